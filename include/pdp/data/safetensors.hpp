#pragma once

#include <concepts>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/element_type.hpp>
#include <pdp/data/input.hpp>
#include <pdp/data/safetensors_header.hpp>
#include <pdp/data/safetensors_reader.hpp>
#include <pdp/data/safetensors_writer.hpp>

/// Reads and writes safetensors files (https://huggingface.co/docs/safetensors). A file holds the length of the header (8 bytes), the
/// header (JSON) and the bytes of the tensors.
namespace pdp::data {

/// A safetensors file open for reading. The constructor reads and checks the header; read() reads one tensor.
class SafeTensors {
 public:
  /// Throws FileError if the file cannot be read or its header is invalid (see SafeTensorsHeader).
  explicit SafeTensors(const std::filesystem::path& path) : SafeTensors{Input{path}} {}
  explicit SafeTensors(Input input) : input_{std::move(input)}, header_{detail::HeaderReader{input_}.read()} {}

  /// Returns the tensors in the order of their bytes in the file.
  [[nodiscard]] const std::vector<TensorInfo>& tensors() const { return header_.tensors; }
  [[nodiscard]] const Metadata& metadata() const { return header_.metadata; }
  [[nodiscard]] const std::string& name() const { return input_.name(); }
  [[nodiscard]] bool contains(std::string_view name) const { return header_.find(name) != nullptr; }

  /// Returns the tensor with this name. Throws FileError if there is none.
  [[nodiscard]] const TensorInfo& at(std::string_view name) const {
    const TensorInfo* tensor = header_.find(name);
    if (tensor == nullptr)
      throw FileError{
          text(this->name(), ": expected a tensor '", detail::shown(name), "', found ", names(), ". Is it a file of another model?")};
    return *tensor;
  }

  /// Reads a tensor into `values`. Throws FileError if there is no such tensor, or its type or number of elements differs from that of
  /// `values`.
  template <Element T>
  void read(std::string_view name, std::span<T> values) const {
    const TensorInfo& tensor = at(name);
    const ElementType wanted = *element_type_of<T>;
    if (tensor.type != wanted || tensor.elements() != as_index(values.size()))
      throw FileError{text(this->name(), ": expected ", values.size(), " elements of type ", info(wanted).name, " as tensor '",
                           detail::shown(name), "', found ", tensor.elements(), " of type ", detail::shown(tensor.type_name()),
                           ". Is it a file of another model?")};
    if constexpr (std::same_as<T, bool>)
      read_bools(tensor, values);
    else
      input_.read_at(header_.data_begin + tensor.begin, std::as_writable_bytes(values));
  }

 private:
  /// Throws FileError if a byte is neither 0 nor 1, since a bool must not hold another value.
  void read_bools(const TensorInfo& tensor, std::span<bool> values) const {
    std::vector<std::byte> bytes(values.size());
    input_.read_at(header_.data_begin + tensor.begin, bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] > std::byte{1})
        throw FileError{text(name(), ": expected bytes 0 and 1 in the BOOL tensor '", detail::shown(tensor.name), "', found ",
                             std::to_integer<int>(bytes[i]), ". The file is damaged: copy or download it again.")};
      values[i] = bytes[i] == std::byte{1};
    }
  }

  [[nodiscard]] std::string names() const {
    constexpr std::size_t shown = 8;
    std::string joined = tensors().empty() ? "no tensor" : "";
    for (std::size_t i = 0; i < tensors().size() && i < shown; ++i)
      joined += text(i > 0 ? ", '" : "'", detail::shown(tensors()[i].name), "'");
    if (tensors().size() > shown) joined += text(" and ", tensors().size() - shown, " more");
    return joined;
  }

  Input input_;
  SafeTensorsHeader header_;
};

}  // namespace pdp::data
