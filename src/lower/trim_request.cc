// The text form of a trim request.
#include "lower/trim_request.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <sstream>

namespace heddle::lower {
namespace {

class Parser {
 public:
  Parser(const kernel::Kernel& kernel, std::string_view text)
      : kernel_(kernel), words_(std::string(text)) {
    const auto globals = static_cast<size_t>(kernel.global_count());
    result_.globals.resize(globals);
  }

  Result<TrimRequest> run() {
    while (next())
      HEDDLE_RETURN_IF_ERROR(word_ == "extent" ? extent() : word_ == "made" ? made() : buffer());
    return std::move(result_);
  }

 private:
  // The next word; an item ends with a semicolon behind its last one.
  bool next() {
    ends_ = !(words_ >> word_);
    if (ends_) return false;
    ends_ = word_.back() == ';';
    if (ends_) word_.pop_back();
    return true;
  }

  Result<int64_t> number() {
    int64_t value = 0;
    const bool there = !ends_ && next();
    const char* end = word_.data() + word_.size();
    if (!there || std::from_chars(word_.data(), end, value).ptr != end || value < 1)
      return user_error("trim: a number from 1 on was expected at `{}`", word_);
    return value;
  }

  Result<size_t> global() const {
    for (size_t b = 0; b < result_.globals.size(); ++b)
      if (kernel_.buffers[b].name == word_) return b;
    return user_error("trim: the kernel has no global buffer `{}`", word_);
  }

  Status extent() {
    if (ends_ || !next()) return user_error("trim: which buffer has the extent?");
    HEDDLE_ASSIGN_OR_RETURN(const size_t buffer, global());
    TrimGroup group;
    group.extent = kernel::BufferId(buffer);
    while (!ends_ && next()) {
      if (word_ == "reduced" || word_ == "windows") {
        (word_ == "reduced" ? group.reduced : group.windows) = true;
        continue;
      }
      int64_t* value = word_ == "bound"    ? &group.bound
                       : word_ == "least"  ? &group.least
                       : word_ == "times"  ? &group.times
                       : word_ == "beyond" ? &group.beyond
                                           : nullptr;
      if (!value) return user_error("trim: an extent has no `{}`", word_);
      HEDDLE_ASSIGN_OR_RETURN(*value, number());
    }
    result_.groups.push_back(group);
    return {};
  }

  Status made() {
    if (ends_ || !next()) return user_error("trim: which buffer is made from nothing?");
    HEDDLE_ASSIGN_OR_RETURN(const size_t buffer, global());
    result_.made.insert(buffer);
    return {};
  }

  Status buffer() {
    HEDDLE_ASSIGN_OR_RETURN(const size_t at, global());
    if (result_.groups.empty()) return user_error("trim: `{}` stands before any extent", word_);
    const int group = static_cast<int>(result_.groups.size()) - 1;
    HEDDLE_ASSIGN_OR_RETURN(const int64_t stride, number());
    result_.globals[at].push_back({stride, group});
    if (ends_ || !next()) return {};
    if (word_ == "window") {
      result_.globals[at].back().window = true;
      return {};
    }
    if (word_ != "reach") return user_error("trim: a buffer has no `{}`", word_);
    HEDDLE_ASSIGN_OR_RETURN(result_.globals[at].back().reach, number());
    return {};
  }

  const kernel::Kernel& kernel_;
  std::istringstream words_;
  std::string word_;
  bool ends_ = false;
  TrimRequest result_;
};

}  // namespace

bool TrimRequest::reads_windows(int group) const {
  return groups[static_cast<size_t>(group)].windows ||
         std::any_of(globals.begin(), globals.end(), [&](const std::vector<TrimDigit>& digits) {
           return std::any_of(digits.begin(), digits.end(), [&](const TrimDigit& digit) {
             return digit.window && digit.group == group;
           });
         });
}

std::vector<int64_t> counted_on(const TrimRequest& request) {
  std::map<uint32_t, int64_t> most;
  for (const auto& digits : request.globals)
    for (const TrimDigit& digit : digits) {
      int64_t& reach =
          most.emplace(request.groups[static_cast<size_t>(digit.group)].extent.value, 1)
              .first->second;
      reach = common_reach(reach, digit.reach);
    }
  std::vector<int64_t> result;
  for (const TrimGroup& group : request.groups)
    result.push_back(most.emplace(group.extent.value, 1).first->second);
  return result;
}

int64_t common_reach(int64_t a, int64_t b) {
  constexpr int64_t kAll = int64_t{1} << 40;
  a = std::max<int64_t>(a, 1), b = std::max<int64_t>(b, 1);
  if (a >= kAll || b >= kAll) return kAll;
  return std::min(std::lcm(a, b), kAll);
}

Result<TrimRequest> parse_trim_request(const kernel::Kernel& kernel, std::string_view text) {
  return Parser(kernel, text).run();
}

}  // namespace heddle::lower
