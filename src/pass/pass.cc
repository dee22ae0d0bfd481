#include "pass/pass.h"

#include <algorithm>

#include "base/check.h"

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

void PassTable::add(std::span<const PassInfo> rows) {
  for (const PassInfo& row : rows) {
    HEDDLE_CHECK(row.function, "pass {} has no function", row.name);
    HEDDLE_CHECK(by_name_.emplace(row.name, &row).second, "two passes are called {}", row.name);
    rows_.push_back(&row);
  }
}

const PassInfo* PassTable::find(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

}  // namespace heddle::pass
