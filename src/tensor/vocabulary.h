// Strings as numbers. A tensor of strings is represented as a u32 tensor, whose elements are the
// strings' ids in a vocabulary: equal strings have equal ids, so that moving and comparing them is
// moving and comparing integers. Ids are assigned in order of first appearance, the empty string's
// is 0; the strings of a model come first, then those of its inputs. Strings become ids where
// values come in (npz files, ONNX tensors), ids become strings where they go out.
//
// Thread safety: all calls, from any thread. Texts are bytes (UTF-8 if they come from ONNX).
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tensor/type.h"

namespace heddle::tensor {

constexpr Type kTextType = Type::u32;  // of ids

class Vocabulary {
 public:
  Vocabulary();
  Vocabulary(const Vocabulary&) = delete;
  uint32_t id(std::string_view text);  // adds it if new
  // The text of an assigned id; "" for any other. It lives as long as the vocabulary.
  const std::string& text(uint32_t id) const;
  int64_t size() const;

 private:
  mutable std::mutex mutex_;
  std::deque<std::string> texts_;  // a deque: addresses stay valid
  std::unordered_map<std::string_view, uint32_t> ids_;
};

}  // namespace heddle::tensor
