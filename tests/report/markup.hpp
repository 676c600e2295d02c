// Shared by the tests of pages: a strict reader of HTML.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// Reads pages in HTML, as strictly as XML: every element is closed, attributes are in quotes, and < and & stand for nothing else.
namespace markup {

struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;           // of the element and of all elements inside it, decoded
  std::vector<int> children;  // their numbers
};

class Page {
 public:
  /// Throws std::runtime_error if the page is malformed, or if two elements have the same id.
  explicit Page(std::string_view html) : rest_{html} {
    constexpr std::string_view type = "<!DOCTYPE html>\n";
    if (!rest_.starts_with(type)) fail("no document type");
    rest_.remove_prefix(type.size());
    while (!rest_.empty()) rest_.front() == '<' ? tag() : words();
    if (!open_.empty()) fail("not closed: " + all_[static_cast<std::size_t>(open_.back())].name);
  }

  [[nodiscard]] const std::vector<Element>& elements() const { return all_; }
  [[nodiscard]] bool has(const std::string& id) const { return ids_.contains(id); }
  /// Returns the element with an id. Throws std::runtime_error if there is none.
  [[nodiscard]] const Element& at(const std::string& id) const {
    if (!has(id)) throw std::runtime_error{"no element has the id " + id};
    return all_[static_cast<std::size_t>(ids_.at(id))];
  }
  /// Returns the number of elements with a name inside another one.
  [[nodiscard]] int count(const Element& in, std::string_view name) const {
    int found = 0;
    for (const int child : in.children) {
      const Element& element = all_[static_cast<std::size_t>(child)];
      found += (element.name == name ? 1 : 0) + count(element, name);
    }
    return found;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw std::runtime_error{why + " before: " + std::string{rest_.substr(0, 60)}}; }

  std::string_view until(std::string_view end) {
    const std::size_t at = rest_.find(end);
    if (at == std::string_view::npos) fail("no " + std::string{end});
    const std::string_view part = rest_.substr(0, at);
    rest_.remove_prefix(at + end.size());
    return part;
  }

  std::string decoded(std::string_view part) const {
    static const std::map<std::string, char, std::less<>> names{{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"#39", '\''}};
    std::string text;
    for (std::size_t at = 0; at < part.size(); ++at) {
      if (part[at] == '<') fail("a stray <");
      if (part[at] != '&') {
        text += part[at];
        continue;
      }
      const std::size_t end = part.find(';', at);
      const auto found = end == std::string_view::npos ? names.end() : names.find(part.substr(at + 1, end - at - 1));
      if (found == names.end()) fail("a stray &");
      text += found->second;
      at = end;
    }
    return text;
  }

  void words() {
    const std::size_t end = std::min(rest_.find('<'), rest_.size());
    const std::string text = decoded(rest_.substr(0, end));
    rest_.remove_prefix(end);
    for (const int element : open_) all_[static_cast<std::size_t>(element)].text += text;
  }

  void tag() {
    std::string_view inside = until(">").substr(1);
    if (inside.starts_with('/')) {
      if (open_.empty() || all_[static_cast<std::size_t>(open_.back())].name != inside.substr(1)) fail("closes no open element");
      open_.pop_back();
      return;
    }
    const bool closes = inside.ends_with('/');
    if (closes) inside.remove_suffix(1);
    Element element;
    const std::size_t end = std::min(inside.find(' '), inside.size());
    element.name = inside.substr(0, end);
    if (element.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz123456") != std::string::npos) fail("a bad name");
    inside.remove_prefix(end);
    while (!inside.empty()) {
      const std::size_t equals = inside.find("=\""), quote = equals == std::string_view::npos ? equals : inside.find('"', equals + 2);
      if (inside.front() != ' ' || quote == std::string_view::npos) fail("a bad attribute");
      const std::string name{inside.substr(1, equals - 1)};
      if (!element.attributes.emplace(name, decoded(inside.substr(equals + 2, quote - equals - 2))).second) fail("twice: " + name);
      inside.remove_prefix(quote + 1);
    }
    const int number = static_cast<int>(all_.size());
    if (!open_.empty()) all_[static_cast<std::size_t>(open_.back())].children.push_back(number);
    if (const auto id = element.attributes.find("id"); id != element.attributes.end() && !ids_.emplace(id->second, number).second)
      fail("a second id " + id->second);
    all_.push_back(element);
    if (element.name == "style")
      until("</style>");
    else if (!closes && element.name != "meta")
      open_.push_back(number);
  }

  std::string_view rest_;
  std::vector<Element> all_;
  std::map<std::string, int> ids_;
  std::vector<int> open_;
};

}  // namespace markup
