#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <pdp/comm/mpi/session.hpp>
#include <pdp/comm/operation.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::mpi {

/// Returns MPI's datatype for an element type. MPI has none for 16-bit floats, which are sent as 16-bit integers.
inline MPI_Datatype type_of(DType type) {
  switch (type) {
    case DType::byte:
      return MPI_UNSIGNED_CHAR;  // MPI_BYTE has no sum
    case DType::int8:
      return MPI_INT8_T;
    case DType::int32:
      return MPI_INT32_T;
    case DType::int64:
      return MPI_INT64_T;
    case DType::float32:
      return MPI_FLOAT;
    case DType::float64:
      return MPI_DOUBLE;
    case DType::float16:
    case DType::bfloat16:
      return MPI_UINT16_T;
  }
  return MPI_DATATYPE_NULL;
}

/// The MPI operations that combine elements. pdp adds its own for 16-bit floats, which MPI lacks, and for min and max of floating-point
/// numbers, because MPI does not define the result for NaN. Each world creates its own operations once.
class Operations {
 public:
  Operations() {
    add<Float16, Sum>();
    add<Float16, Product>();
    add<BFloat16, Sum>();
    add<BFloat16, Product>();
    add_extremes<Float16, BFloat16, float, double>();
  }
  Operations(Operations&&) = delete;
  ~Operations() {
    if (!is_running()) return;
    for (auto& of_type : own_)
      for (MPI_Op& operation : of_type)
        if (operation != MPI_OP_NULL) MPI_Op_free(&operation);
  }

  /// Returns the operation for an element type, or MPI_OP_NULL if there is none. An average is a sum here: pdp divides it.
  [[nodiscard]] MPI_Op of(DType type, Reduction reduction) const {
    if (reduction == Reduction::average) reduction = Reduction::sum;
    const MPI_Op own = own_[as_size(type)][as_size(reduction)];
    const bool half = type == DType::float16 || type == DType::bfloat16;
    return own != MPI_OP_NULL || half ? own : of_mpi(reduction);
  }

 private:
  template <Element T, Combines<T> O>
  static void combine(void* values, void* into, int* count, MPI_Datatype*) {
    comm::combine<T, O>(static_cast<std::byte*>(into), static_cast<const std::byte*>(values), as_size(*count) * sizeof(T));
  }
  template <Element T, Combines<T> O>
  void add() {
    constexpr int commutes = 1;
    MPI_Op_create(&combine<T, O>, commutes, &own_[as_size(dtype_of<T>)][as_size(O::reduction)]);
  }
  template <Element... T>
  void add_extremes() {
    (add<T, Min>(), ...);
    (add<T, Max>(), ...);
  }
  static MPI_Op of_mpi(Reduction reduction) {
    switch (reduction) {
      case Reduction::sum:
        return MPI_SUM;
      case Reduction::product:
        return MPI_PROD;
      case Reduction::min:
        return MPI_MIN;
      case Reduction::max:
        return MPI_MAX;
      case Reduction::bit_and:
        return MPI_BAND;
      case Reduction::bit_or:
        return MPI_BOR;
      default:
        return MPI_OP_NULL;
    }
  }
  static constexpr std::size_t types = 8, reductions = 8;
  using Table = std::array<std::array<MPI_Op, reductions>, types>;
  static Table none() {
    Table table;
    for (auto& of_type : table) of_type.fill(MPI_OP_NULL);
    return table;
  }

  Table own_ = none();
};
static_assert(as_int(DType::bfloat16) == 7 && as_int(Reduction::bit_or) == 7, "the tables' sizes");

/// A datatype for one message of more elements than MPI's functions can count in an int.
class LargeType {
 public:
  /// `most`: the largest count to pass to MPI.
  LargeType(MPI_Datatype type, std::size_t element, std::size_t count, int most) {
    const auto blocks = count / as_size(most), rest = count % as_size(most);
    MPI_Datatype block = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(most, type, &block);
    const std::array<int, 2> counts{as_int(blocks), as_int(rest)};
    const std::array<MPI_Aint, 2> begins{0, static_cast<MPI_Aint>((count - rest) * element)};
    const std::array<MPI_Datatype, 2> types{block, type};
    MPI_Type_create_struct(2, counts.data(), begins.data(), types.data(), &type_);
    MPI_Type_commit(&type_);
    MPI_Type_free(&block);
  }
  LargeType(LargeType&&) = delete;
  /// Calls in flight keep the datatype.
  ~LargeType() { MPI_Type_free(&type_); }

  [[nodiscard]] MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

}  // namespace pdp::comm::mpi
