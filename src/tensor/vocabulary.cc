#include "tensor/vocabulary.h"

namespace heddle::tensor {

Vocabulary::Vocabulary() { id(""); }

uint32_t Vocabulary::id(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
  const auto fresh = static_cast<uint32_t>(texts_.size());
  ids_.emplace(texts_.emplace_back(text), fresh);
  return fresh;
}

const std::string& Vocabulary::text(uint32_t id) const {
  const std::lock_guard lock(mutex_);
  return texts_[id < texts_.size() ? id : 0];
}

int64_t Vocabulary::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(texts_.size());
}

}  // namespace heddle::tensor
