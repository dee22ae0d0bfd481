// Id<Tag>: a typed 32-bit index, so that a stage cannot be looked up with a loop's number.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace heddle {

template <typename Tag>
struct Id {
  static constexpr uint32_t kNone = 0xffffffffu;
  uint32_t value = kNone;

  constexpr Id() = default;
  constexpr explicit Id(size_t v) : value(static_cast<uint32_t>(v)) {}
  constexpr bool valid() const { return value != kNone; }
  constexpr size_t index() const { return value; }
  auto operator<=>(const Id&) const = default;
};

}  // namespace heddle

template <typename Tag>
struct std::hash<heddle::Id<Tag>> {
  size_t operator()(heddle::Id<Tag> id) const { return std::hash<uint32_t>()(id.value); }
};
