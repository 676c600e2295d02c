#pragma once

#include <sys/mman.h>

#include <pdp/cpu/cpu.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

/// A device that computes like a CPU, in memory that only its operations can access, like that of a GPU.
namespace apart {

using pdp::Index;

/// All memory of a device. It can be read and written only while an operation runs.
class Pages {
 public:
  Pages() : begin_{::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)} {
    if (begin_ == MAP_FAILED) throw std::system_error{errno, std::generic_category(), "mmap"};
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { ::munmap(begin_, bytes); }

  std::byte* take(std::size_t size) {
    std::byte* const taken = static_cast<std::byte*>(begin_) + used_;
    used_ += (size + pdp::alignment - 1) / pdp::alignment * pdp::alignment;
    if (used_ > bytes) throw std::bad_alloc{};
    return taken;
  }
  void open(bool on) {
    if (::mprotect(begin_, bytes, on ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
      throw std::system_error{errno, std::generic_category(), "mprotect"};
  }

 private:
  static constexpr std::size_t bytes = std::size_t{16} << 20;
  void* begin_;
  std::size_t used_ = 0;
};

/// Recorded operations with their operands.
using List = std::vector<std::function<void(const pdp::cpu::Cpu&)>>;

struct Device {
  static constexpr bool uses_host_memory = false;
  /// Recorded lists of operations by key. A replay runs a list again without calling the host code that recorded it.
  struct Recordings {
    std::map<std::vector<Index>, List> lists;
    int replayed = 0;
  };
  struct State {
    Pages pages;
    List* recording = nullptr;
  };
  std::shared_ptr<State> state = std::make_shared<State>();
  pdp::cpu::Cpu cpu{};
};

/// Calls operation(cpu) with access to the memory.
template <class F>
auto now(const Device& device, F&& operation) {
  struct Open {
    explicit Open(Pages& all) : pages{all} { pages.open(true); }
    ~Open() { pages.open(false); }
    Pages& pages;
  } const open{device.state->pages};
  return operation(device.cpu);
}

/// Runs the operation, or appends it to the recording while the device records.
template <class F>
void run(const Device& device, F operation) {
  if (device.state->recording != nullptr)
    device.state->recording->push_back(operation);
  else
    now(device, operation);
}

/// Throws if the device records: the host would get an answer once, not in each replayed step.
inline void refuse(const Device& device, const char* what) {
  if (device.state->recording != nullptr) throw std::logic_error{std::string{what} + " while operations are recorded"};
}

template <class T>
class Memory {
 public:
  Memory() = default;
  Memory(std::shared_ptr<Device::State> state, Index elements)
      : state_{std::move(state)},
        data_{reinterpret_cast<T*>(state_->pages.take(static_cast<std::size_t>(elements) * sizeof(T)))},
        size_{elements} {}

  [[nodiscard]] T* data() { return data_; }
  [[nodiscard]] const T* data() const { return data_; }
  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] std::span<T> span() { return {data_, static_cast<std::size_t>(size_)}; }
  [[nodiscard]] std::span<const T> span() const { return {data_, static_cast<std::size_t>(size_)}; }

 private:
  std::shared_ptr<Device::State> state_;
  T* data_ = nullptr;
  Index size_ = 0;
};

template <class T>
Memory<T> allocate(const Device& device, Index elements) {
  refuse(device, "memory is asked for");
  return {device.state, elements};
}
template <class T>
std::vector<T> on_host(const Device& device, std::span<const T> values) {
  refuse(device, "the host looks at values");
  return now(device, [&](const pdp::cpu::Cpu&) { return std::vector<T>(values.begin(), values.end()); });
}
template <class T>
pdp::cpu::Read<T> read_later(const Device& device, const T* value) {
  refuse(device, "the host asks for a value");
  return now(device, [&](const pdp::cpu::Cpu& cpu) { return read_later(cpu, value); });
}
template <std::size_t Fields, class Rule, class T>
void update(const Device& device, const Rule& rule, const pdp::StepNumbers* numbers, std::span<T> parameters,
            std::span<const T* const> gradients, std::span<T> state, std::span<T* const> copies) {
  run(device, [=, from = std::vector<const T*>(gradients.begin(), gradients.end()),
               to = std::vector<T*>(copies.begin(), copies.end())](const pdp::cpu::Cpu& cpu) {
    update<Fields>(cpu, rule, numbers, parameters, std::span<const T* const>{from}, state, std::span<T* const>{to});
  });
}

template <class T>
void upload(const Device& device, std::span<const T> from, T* to) {
  refuse(device, "values of the host are copied");
  now(device, [&](const pdp::cpu::Cpu& cpu) { upload(cpu, from, to); });
}
inline void reserve_uploads(const Device&, std::initializer_list<std::size_t>) {}
inline bool takes_at_once(const Device&, std::initializer_list<std::size_t>) { return true; }
template <class... Operands>
void zero(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { zero(cpu, operands...); });
}
template <class... Operands>
void store(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { store(cpu, operands...); });
}
template <class... Operands>
void fill_uniform(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { fill_uniform(cpu, operands...); });
}
template <class... Operands>
void scale_loss(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { scale_loss(cpu, operands...); });
}
template <class... Operands>
void apply_gradient_rule(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { apply_gradient_rule(cpu, operands...); });
}
template <class... Operands>
void gemm(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { gemm(cpu, operands...); });
}
template <class... Operands>
void gemm_nt(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { gemm_nt(cpu, operands...); });
}
template <class... Operands>
void gemm_tn(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { gemm_tn(cpu, operands...); });
}
template <class... Operands>
void add_row(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { add_row(cpu, operands...); });
}
template <class... Operands>
void sum_rows(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { sum_rows(cpu, operands...); });
}
template <class... Operands>
void relu(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { relu(cpu, operands...); });
}
template <class... Operands>
void relu_backward(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { relu_backward(cpu, operands...); });
}
template <class... Operands>
void hyperbolic_tangent(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { hyperbolic_tangent(cpu, operands...); });
}
template <class... Operands>
void hyperbolic_tangent_backward(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { hyperbolic_tangent_backward(cpu, operands...); });
}
template <class... Operands>
void add(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { add(cpu, operands...); });
}
template <class... Operands>
void copy(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { copy(cpu, operands...); });
}
template <class... Operands>
void convert(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { convert(cpu, operands...); });
}
template <class... Operands>
void softmax_cross_entropy(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { softmax_cross_entropy(cpu, operands...); });
}
template <class... Operands>
void softmax_part(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { softmax_part(cpu, operands...); });
}
template <class... Operands>
void softmax_cross_entropy_of_parts(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { softmax_cross_entropy_of_parts(cpu, operands...); });
}
template <class... Operands>
void squared_error(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { squared_error(cpu, operands...); });
}
template <class... Operands>
void sum_of_squares(const Device& device, const Operands&... operands) {
  run(device, [=](const pdp::cpu::Cpu& cpu) { sum_of_squares(cpu, operands...); });
}

template <class Body>
void replay(const Device& device, Device::Recordings& recordings, std::span<const Index> key, Body&& body) {
  const auto [found, is_new] = recordings.lists.try_emplace({key.begin(), key.end()});
  if (is_new) {
    device.state->recording = &found->second;
    body();
    device.state->recording = nullptr;
  } else {
    ++recordings.replayed;
  }
  for (const auto& operation : found->second) now(device, operation);
}

static_assert(pdp::Device<Device>);

}  // namespace apart
