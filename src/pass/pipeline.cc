#include "pass/pipeline.h"

#include <cctype>

namespace heddle::pass {
namespace {

constexpr int kMaxDepth = 8;
constexpr int64_t kMaxRounds = 1000;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Pipeline> pipeline() {
    Pipeline result;
    if (skip_spaces(); at_ == text_.size()) return result;
    HEDDLE_ASSIGN_OR_RETURN(result.steps, list(0));
    if (at_ != text_.size()) return failure("`,` or the end");
    return result;
  }

 private:
  Result<std::vector<Pipeline::Step>> list(int depth) {
    std::vector<Pipeline::Step> steps;
    do {
      HEDDLE_ASSIGN_OR_RETURN(Pipeline::Step next, step(depth));
      steps.push_back(std::move(next));
    } while (take(','));
    return steps;
  }

  Result<Pipeline::Step> step(int depth) {
    Pipeline::Step result;
    if (!take('{')) {
      skip_spaces();
      while (at_ < text_.size() && is_name(text_[at_])) result.pass += text_[at_++];
      if (result.pass.empty()) return failure("the name of a pass or `{`");
      skip_spaces();
      return result;
    }
    if (depth == kMaxDepth) return failure("at most 8 groups inside one another");
    HEDDLE_ASSIGN_OR_RETURN(result.group, list(depth + 1));
    if (!take('}')) return failure("`,` or `}`");
    if (!take('*')) return failure("`*` behind a group");
    HEDDLE_RETURN_IF_ERROR(rounds(result));
    return result;
  }

  Status rounds(Pipeline::Step& step) {
    if (at_ == text_.size() || !is_digit(text_[at_])) return {};
    step.max_rounds = 0;
    while (at_ < text_.size() && is_digit(text_[at_]) && step.max_rounds <= kMaxRounds)
      step.max_rounds = step.max_rounds * 10 + (text_[at_++] - '0');
    if (step.max_rounds < 1 || step.max_rounds > kMaxRounds) return failure("1 to 1000 rounds");
    skip_spaces();
    return {};
  }

  tl::unexpected<Error> failure(std::string_view wanted) const {
    const std::string_view rest = text_.substr(at_, 16);
    return user_error("pipeline, column {}: got `{}`, wanted {}", at_ + 1, rest, wanted);
  }

  static bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }
  static bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  void skip_spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    skip_spaces();
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

void print(const std::vector<Pipeline::Step>& steps, std::string& out) {
  for (size_t i = 0; i < steps.size(); ++i) {
    if (i > 0) out += ',';
    const Pipeline::Step& step = steps[i];
    if (!step.pass.empty()) {
      out += step.pass;
      continue;
    }
    out += '{';
    print(step.group, out);
    out += "}*";
    if (step.max_rounds != Pipeline::kDefaultRounds) out += fmt::to_string(step.max_rounds);
  }
}

}  // namespace

Result<Pipeline> parse_pipeline(std::string_view text) { return Parser(text).pipeline(); }

std::string to_string(const Pipeline& pipeline) {
  std::string out;
  print(pipeline.steps, out);
  return out;
}

}  // namespace heddle::pass
