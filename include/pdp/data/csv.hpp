#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/data/input.hpp>

/// Reads CSV files by libcsv (https://github.com/rgamble/libcsv).
namespace pdp::data {

/// A column of a CSV file: a name from the first line, or a number that counts from 0.
using CsvColumn = std::variant<std::string, Index>;

/// The form of a CSV file, and the columns that become a dataset: {.inputs = {"area", "year"}, .targets = {"price"}}.
struct CsvOptions {
  std::vector<CsvColumn> inputs{};   // the values of a sample, in this order; empty: all columns that are not targets
  std::vector<CsvColumn> targets{};  // one or more; exactly one if the targets are class numbers
  bool header = true;                // the first line has the names of the columns
  char separator = ',';
};

/// Reads a CSV file into memory, plain or compressed by gzip. T is std::int32_t for class numbers, which count from 0, and float for other
/// targets. Samples have the shape [inputs], and targets [targets].
///
/// The format is that of RFC 4180: a field in quotes may contain separators, line breaks and doubled quotes. Lines end with LF, CR LF or
/// CR; empty lines are skipped. Numbers have a decimal point in every locale. Spaces around them are ignored. Columns that are not named
/// may contain any text.
///
/// Throws ConfigError if the options contradict each other. Throws FileError, with the line, if a named column is missing, a row has too
/// few or too many fields, quotes are not closed, or a field is larger than 1 MiB or not the number that is expected. An empty field, NaN
/// and infinity are no numbers.
template <TargetElement T>
[[nodiscard]] InMemory<T> read_csv(const Input& input, const CsvOptions& options);
template <TargetElement T>
[[nodiscard]] InMemory<T> read_csv(const std::filesystem::path& path, const CsvOptions& options) {
  return read_csv<T>(Input{path}, options);
}

#ifdef PDP_SEPARATE_CSV
extern template InMemory<std::int32_t> read_csv(const Input&, const CsvOptions&);
extern template InMemory<float> read_csv(const Input&, const CsvOptions&);
#endif

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CSV
#include <pdp/data/source/csv.hpp>
#endif
