#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <pdp/core/device.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/stage_parameters.hpp>

namespace pdp::detail {

/// Returns the parameters that a rank keeps, as bytes that only set_kept_parameters() of the same stage can use.
template <class D, class T>
std::vector<std::byte> kept_parameters(nn::StageParameters<D, T>& stage) {
  std::vector<std::byte> bytes;
  stage.for_each_kept([&]<class E>(const auto&, Index, std::span<E> values) {
    const auto& read = on_host(stage.device(), std::span<const E>{values});
    const auto from = std::as_bytes(std::span<const E>{read});
    bytes.insert(bytes.end(), from.begin(), from.end());
  });
  return bytes;
}

template <class D, class T>
void set_kept_parameters(nn::StageParameters<D, T>& stage, std::span<const std::byte> bytes) {
  stage.for_each_kept([&]<class E>(const auto&, Index, std::span<E> values) {
    std::vector<E> read(values.size());
    const auto to = std::as_writable_bytes(std::span{read});
    std::ranges::copy(bytes.first(to.size()), to.begin());
    bytes = bytes.subspan(to.size());
    upload(stage.device(), std::span<const E>{read}, values.data());
  });
}

}  // namespace pdp::detail
