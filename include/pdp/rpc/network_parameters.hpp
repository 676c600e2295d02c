#pragma once

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <pdp/checkpoint/parameters.hpp>
#include <pdp/core/error.hpp>
#include <pdp/rpc/autograd/network.hpp>
#include <pdp/rpc/future.hpp>
#include <pdp/rpc/remote.hpp>

/// The parameters of remote networks on the rank that calls them, for example to save them by checkpoint::save(). If the networks are parts
/// of a larger model (NetworkOptions::position), the file is one of that model.
namespace pdp::rpc {

/// Returns the parameters of all networks, one network after another.
template <class... N>
[[nodiscard]] std::vector<checkpoint::Tensor> parameters(const Remote<N>&... networks) {
  static_assert((check_network<N>() && ...));
  std::vector<checkpoint::Tensor> all;
  auto parts = std::tuple{networks.template async<&N::parameters>()...};
  const auto take = [&](Future<std::vector<checkpoint::Tensor>>& part) {
    for (checkpoint::Tensor& tensor : part.get()) all.push_back(std::move(tensor));
  };
  std::apply([&](auto&... each) { (take(each), ...); }, parts);
  return all;
}

/// Sets the parameters of all networks. Throws FileError if a tensor is missing, has another shape, or is of none of the networks. Some
/// networks may then have been set.
template <class... N>
void set_parameters(const std::vector<checkpoint::Tensor>& tensors, const Remote<N>&... networks) {
  static_assert((check_network<N>() && ...));
  std::vector<std::string> names;
  auto parts = std::tuple{networks.template async<&N::set_parameters>(tensors)...};
  const auto take = [&](Future<std::vector<std::string>>& part) {
    for (std::string& name : part.get()) names.push_back(std::move(name));
  };
  std::apply([&](auto&... each) { (take(each), ...); }, parts);
  for (const checkpoint::Tensor& tensor : tensors)
    if (tensor.other_type.empty() && std::ranges::find(names, tensor.name) == names.end())
      throw FileError{text("the given parameters have a tensor ", in_quotes(tensor.name), ", which is none of the networks'")};
}

}  // namespace pdp::rpc
