#pragma once

/// Definitions for pdp/data/csv.hpp; see pdp/core/separate_compilation.hpp.

#if !__has_include(<csv.h>)
#error "CSV files need libcsv 3 (Debian: libcsv-dev), and the CMake target pdp::csv"
#include <see the error above>
#endif
#include <csv.h>
#ifndef LIBCSV_H__
#error "CSV files need libcsv 3 (Debian: libcsv-dev); the header csv.h that was found is of another library"
#endif

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/csv.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/gzip.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/data/input.hpp>

namespace pdp::data {

namespace detail {

/// The fields of one row of a CSV file, and their place in the file.
class CsvRow {
 public:
  explicit CsvRow(std::string file) : file_{std::move(file)} {}

  void append(std::string_view field) {
    letters_.append(field);
    ends_.push_back(letters_.size());
  }
  void clear() {
    letters_.clear();
    ends_.clear();
  }
  [[nodiscard]] std::size_t size() const { return ends_.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t column) const {
    const std::size_t begin = column == 0 ? 0 : ends_[column - 1];
    return std::string_view{letters_}.substr(begin, ends_[column] - begin);
  }

  /// Returns a field as a number. Throws FileError if it is another.
  void read(std::size_t column, float& number) const {
    std::string_view field = trimmed(column);
    if (field.starts_with('+') && !field.starts_with("+-")) field.remove_prefix(1);
    double value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    number = static_cast<float>(value);
    if (error != std::errc{} || end != field.data() + field.size() || !is_finite(number))
      bad(column, "a finite number that fits a float", "Write numbers with a decimal point, or leave this row out");
  }
  void read(std::size_t column, std::int32_t& number) const {
    const std::string_view field = trimmed(column);
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
    if (error != std::errc{} || end != field.data() + field.size() || number < 0)
      bad(column, "a class number, a whole number from 0 to 2147483647", "Number the classes from 0");
  }

  /// Throws the FileError for a file that is not as expected, found in the current line or in another one.
  template <class... Parts>
  [[noreturn]] void fail(Index at, const Parts&... parts) const {
    throw FileError{text(file_, ", line ", at, ": ", parts...)};
  }

  Index line = 1;                    // counts from 1
  std::vector<std::string> names{};  // of the columns; empty if the file has none

 private:
  [[nodiscard]] std::string_view trimmed(std::size_t column) const {
    std::string_view field = (*this)[column];
    field.remove_prefix(std::min(field.find_first_not_of(" \t"), field.size()));
    return field.substr(0, field.find_last_not_of(" \t") + 1);
  }
  [[noreturn]] void bad(std::size_t column, const char* expected, const char* remedy) const {
    fail(line, "expected ", expected, " in column ", names.empty() ? text(column, " (counted from 0)") : in_quotes(names[column]),
         ", found ", trimmed(column).empty() ? "an empty field" : in_quotes((*this)[column]), ". ", remedy, ".");
  }

  std::string file_, letters_{};
  std::vector<std::size_t> ends_{};  // of each field in letters_
};

/// Reads the rows of a CSV file and appends the numbers of the chosen columns.
template <TargetElement T>
class CsvReader {
 public:
  CsvReader(const Input& input, const CsvOptions& options) : input_{input}, options_{options}, row_{input.name()} {
    const std::size_t targets = options.targets.size();
    if (targets == 0 || (std::same_as<T, std::int32_t> && targets > 1))
      throw ConfigError{text(input.name(), ": expected ", targets == 0 ? "at least one column" : "one column of class numbers",
                             " in CsvOptions::targets, found ", targets, ". Name the column of the target.")};
    if (options.separator == '"' || options.separator == '\n' || options.separator == '\r' || options.separator == ' ')
      throw ConfigError{text(input.name(), ": expected a separator such as , or ; or a tab, found ", in_quotes({&options.separator, 1}),
                             ". Set CsvOptions::separator.")};
    ::csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI);
    ::csv_set_delim(&parser_, static_cast<unsigned char>(options.separator));
  }
  CsvReader(const CsvReader&) = delete;
  CsvReader& operator=(const CsvReader&) = delete;
  ~CsvReader() { ::csv_free(&parser_); }

  InMemory<T> read() {
    UnpackedBytes from{input_};
    std::vector<char> buffer(1 << 16);
    constexpr std::string_view mark = "\xef\xbb\xbf";  // the byte order mark of UTF-8
    bool begin = true;
    while (const std::size_t count = from.read(std::as_writable_bytes(std::span{buffer}))) {
      std::string_view rest{buffer.data(), count};
      if (std::exchange(begin, false) && rest.starts_with(mark)) rest.remove_prefix(mark.size());
      // Parses line by line, so that the number of the line is known.
      for (std::size_t end = 0; !rest.empty(); rest.remove_prefix(end)) {
        end = std::min(rest.find('\n'), rest.size() - 1) + 1;
        parse(rest.substr(0, end));
        if (rest[end - 1] == '\n') ++row_.line;
      }
    }
    if (::csv_fini(&parser_, on_field, on_row, this) != 0 && !thrown_)
      row_.fail(first_line_, "expected that quotes end, found that they do not in this row or a later one. Close the quotes.");
    rethrow();
    if (y_.empty()) row_.fail(row_.line, "expected rows with numbers, found the end of the file. Check the program that wrote it.");
    return {Shape{inputs_.size()}, std::move(x_), std::move(y_), Shape{targets_.size()}};
  }

 private:
  static constexpr std::size_t largest_field = 1 << 20;  // bytes

  void parse(std::string_view line) {
    const std::size_t done = ::csv_parse(&parser_, line.data(), line.size(), on_field, on_row, this);
    rethrow();
    if (done < line.size() && ::csv_error(&parser_) != CSV_EPARSE)
      row_.fail(row_.line, "not enough memory for a field. Free memory, or use a smaller file.");
    if (done < line.size())
      row_.fail(row_.line, "expected quotes around a whole field, found them inside one. Put the field in quotes, and double those in it.");
    if (::csv_get_buffer_size(&parser_) > largest_field)
      row_.fail(first_line_, "expected fields of at most ", largest_field, " bytes, found a larger one. Are all quotes closed?");
  }

  /// libcsv calls these two. No exception may pass through it.
  static void on_field(void* field, std::size_t size, void* self) noexcept {
    static_cast<CsvReader*>(self)->guard([&](CsvReader& reader) {
      if (reader.row_.size() == 0) reader.first_line_ = reader.row_.line;
      reader.row_.append({static_cast<const char*>(field), size});
    });
  }
  static void on_row(int /*end*/, void* self) noexcept {
    static_cast<CsvReader*>(self)->guard([](CsvReader& reader) { reader.take_row(); });
  }
  template <class F>
  void guard(const F& f) noexcept {
    if (thrown_) return;
    try {
      f(*this);
    } catch (...) {
      thrown_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

  void take_row() {
    const bool first = width_ == 0;
    if (first) choose_columns();
    if (row_.size() != width_)
      row_.fail(first_line_, "expected ", width_, " fields, as in the first row, found ", row_.size(),
                ". Check the separator, and put fields that contain it in quotes.");
    if (!first || !options_.header) {
      for (const std::size_t column : inputs_) row_.read(column, x_.emplace_back());
      for (const std::size_t column : targets_) row_.read(column, y_.emplace_back());
    }
    row_.clear();
    first_line_ = row_.line + 1;
  }

  void choose_columns() {
    width_ = row_.size();
    if (options_.header)
      for (std::size_t column = 0; column < width_; ++column) row_.names.emplace_back(row_[column]);
    for (const CsvColumn& column : options_.targets) targets_.push_back(number_of(column));
    for (const CsvColumn& column : options_.inputs) inputs_.push_back(number_of(column));
    if (!inputs_.empty()) return;
    for (std::size_t column = 0; column < width_; ++column)
      if (std::ranges::find(targets_, column) == targets_.end()) inputs_.push_back(column);
    if (inputs_.empty()) row_.fail(row_.line, "expected columns that are not targets, found none. Name the inputs in CsvOptions::inputs.");
  }

  [[nodiscard]] std::size_t number_of(const CsvColumn& column) const {
    if (const auto* const number = std::get_if<Index>(&column)) {
      if (*number < 0 || as_size(*number) >= width_)
        row_.fail(row_.line, "expected a column ", *number, " (counted from 0), found ", width_, " columns. Check the separator.");
      return as_size(*number);
    }
    const auto& name = std::get<std::string>(column);
    if (!options_.header)
      throw ConfigError{text(input_.name(), ": expected the numbers of columns, since the file has no line with names, found ",
                             in_quotes(name), ". Count the columns from 0.")};
    const auto found = std::ranges::find(row_.names, name);
    if (found == row_.names.end()) row_.fail(row_.line, "expected a column ", in_quotes(name), ", found ", names(), ". Check CsvOptions.");
    if (std::find(found + 1, row_.names.end(), name) != row_.names.end())
      row_.fail(row_.line, "expected one column ", in_quotes(name), ", found several. Give the number of the column.");
    return as_size(found - row_.names.begin());
  }

  [[nodiscard]] std::string names() const {
    constexpr std::size_t shown = 8;
    std::string joined;
    for (std::size_t column = 0; column < width_ && column < shown; ++column)
      joined += text(column > 0 ? ", " : "", in_quotes(row_.names[column]));
    if (width_ > shown) joined += text(" and ", width_ - shown, " more");
    return joined;
  }

  const Input& input_;
  const CsvOptions& options_;
  csv_parser parser_{};
  CsvRow row_;
  Index first_line_ = 1;  // of the current row
  std::size_t width_ = 0;
  std::vector<std::size_t> inputs_{}, targets_{};
  std::vector<float> x_{};
  std::vector<T> y_{};
  std::exception_ptr thrown_{};
};

}  // namespace detail

template <TargetElement T>
InMemory<T> read_csv(const Input& input, const CsvOptions& options) {
  return detail::CsvReader<T>{input, options}.read();
}

}  // namespace pdp::data
