#include "pass/pass.h"

#include <algorithm>

namespace heddle::pass {

bool Rewrites::allow(std::string_view pass, std::string_view rule) {
  if (limit_ >= 0 && count_ >= limit_) return false;
  std::string name = fmt::format("{}.{}", pass, rule);
  if (disabled_.contains(name)) return false;
  ++count_;
  ++by_name_[std::move(name)];
  return true;
}

void PassContext::note(std::string text) const {
  if (!notes || std::find(notes->begin(), notes->end(), text) != notes->end()) return;
  notes->push_back(std::move(text));
}

}  // namespace heddle::pass
