// Reads the fields of a protobuf message, one after the other.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "error.h"

namespace heddle::pjrt {

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : left_(bytes) {}

  // False at the end. Throws where the bytes are no message.
  bool next() {
    if (left_.empty()) return false;
    const uint64_t key = varint();
    number_ = key >> 3;
    kind_ = static_cast<int>(key & 7);
    switch (kind_) {
      case kVarint:
        integer_ = varint();
        return true;
      case kFixed64:
        return take(8);
      case kBytes:
        return take(varint());
      case kFixed32:
        return take(4);
      default:
        invalid("the options of the compilation are no protobuf message");
    }
  }
  uint64_t number() const { return number_; }
  // 0, empty: the field is of another kind.
  int64_t integer() const { return kind_ == kVarint ? static_cast<int64_t>(integer_) : 0; }
  std::string_view bytes() const { return kind_ == kBytes ? bytes_ : std::string_view(); }
  double real() const {
    uint64_t bits = 0;
    if (kind_ == kFixed64) std::memcpy(&bits, bytes_.data(), sizeof bits);
    return std::bit_cast<double>(bits);
  }

 private:
  enum { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  uint64_t varint() {
    uint64_t result = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(left_.front());
      left_.remove_prefix(1);
      result |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return result;
    }
    invalid("the options of the compilation end inside a number");
  }
  bool take(uint64_t size) {
    if (size > left_.size()) invalid("the options of the compilation end inside a field");
    bytes_ = left_.substr(0, size);
    left_.remove_prefix(size);
    return true;
  }

  std::string_view left_, bytes_;
  uint64_t number_ = 0, integer_ = 0;
  int kind_ = 0;
};

}  // namespace heddle::pjrt
