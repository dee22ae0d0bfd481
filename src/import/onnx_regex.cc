#include "import/onnx_regex.h"

#include <algorithm>
#include <optional>

#include "tensor/utf8.h"

namespace heddle::import {
namespace {

constexpr uint32_t kMostPoint = 0x10ffff;
constexpr size_t kMostSteps = 20'000;
constexpr int kMostRepeats = 1000, kDeepest = 100;

bool is_word(uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

}  // namespace

// Recursive descent; each part of an expression is a list of steps that falls through at its end.
class RegexParser {
 public:
  explicit RegexParser(std::string_view pattern) : text_(tensor::code_points(pattern)) {}

  Result<Regex> run() {
    std::optional<Steps> steps = alternatives(0);
    if (steps && at_ != text_.size()) refuse("')' without '('");
    if (!error_.empty()) return user_error("pattern: {} at character {}", error_, at_);
    Regex regex;
    regex.steps_ = std::move(*steps);
    regex.steps_.emplace_back();
    return regex;
  }

 private:
  using Step = Regex::Step;
  using Kind = Regex::Kind;
  using Steps = std::vector<Step>;  // targets are relative to the step's index

  std::nullopt_t refuse(std::string why) {
    if (error_.empty()) error_ = std::move(why);
    return std::nullopt;
  }
  bool more() const { return at_ < text_.size(); }
  bool take(uint32_t c) {
    if (!more() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  static Step jump_of(Kind kind, size_t next, int other = 0) {
    Step step;
    step.kind = kind;
    step.next = static_cast<int>(next);
    step.other = other;
    return step;
  }
  static void append(Steps& to, const Steps& from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  std::optional<Steps> alternatives(int depth) {
    if (depth > kDeepest) return refuse("groups are nested too deeply");
    std::optional<Steps> left = sequence(depth);
    while (left && take('|')) {
      std::optional<Steps> right = sequence(depth);
      if (!right) return right;
      Steps both{jump_of(Kind::split, 1, static_cast<int>(left->size()) + 2)};
      append(both, *left);
      both.push_back(jump_of(Kind::jump, right->size() + 1));
      append(both, *right);
      left = std::move(both);
    }
    return left;
  }

  std::optional<Steps> sequence(int depth) {
    Steps steps;
    while (more() && text_[at_] != '|' && text_[at_] != ')') {
      std::optional<Steps> part = atom(depth);
      while (part && more()) {
        const std::optional<std::pair<int, int>> times = repeats();
        if (!error_.empty()) return std::nullopt;
        if (!times) break;
        part = repeated(*part, times->first, times->second);
      }
      if (!part) return part;
      append(steps, *part);
      if (steps.size() > kMostSteps) return refuse("it is too large");
    }
    return steps;
  }

  // {least, most}; most -1: any number.
  std::optional<std::pair<int, int>> repeats() {
    std::optional<std::pair<int, int>> times;
    if (take('*'))
      times = {0, -1};
    else if (take('+'))
      times = {1, -1};
    else if (take('?'))
      times = {0, 1};
    else if (text_[at_] == '{')
      times = braces();
    if (times) take('?');  // lazy matching: irrelevant for full matches
    return times;
  }

  std::optional<std::pair<int, int>> braces() {
    const size_t begin = at_++;
    const auto number = [&]() -> std::optional<int> {
      std::optional<int> value;
      while (more() && text_[at_] >= '0' && text_[at_] <= '9')
        value = std::min(value.value_or(0) * 10 + static_cast<int>(text_[at_++] - '0'),
                         kMostRepeats + 1);
      return value;
    };
    const std::optional<int> least = number();
    std::optional<int> most = least;
    if (least && take(',')) most = number();
    if (!least || !take('}')) {  // a literal brace
      at_ = begin;
      return std::nullopt;
    }
    if (*least > kMostRepeats || most.value_or(0) > kMostRepeats || (most && *most < *least)) {
      refuse("bad repetition");
      return std::nullopt;
    }
    return std::pair(*least, most.value_or(-1));
  }

  std::optional<Steps> repeated(const Steps& part, int least, int most) {
    const auto size = part.size();
    if ((size + 2) * static_cast<size_t>(std::max({least, most, 1})) > kMostSteps)
      return refuse("it is too large");
    Steps steps;
    for (int i = 0; i < least; ++i) append(steps, part);
    if (most < 0) {
      steps.push_back(jump_of(Kind::split, 1, static_cast<int>(size) + 2));
      append(steps, part);
      Step back = jump_of(Kind::jump, 0);
      back.next = -static_cast<int>(size) - 1;
      steps.push_back(back);
    }
    for (int i = least; i < most; ++i) {
      steps.push_back(jump_of(Kind::split, 1, static_cast<int>(size) + 1));
      append(steps, part);
    }
    return steps;
  }

  static Steps one_of(std::vector<Regex::Range> ranges, bool inverse = false) {
    Step step;
    step.kind = Kind::one_of;
    step.ranges = std::move(ranges);
    step.inverse = inverse;
    return {step};
  }
  static Steps point(Kind kind) {
    Step step;
    step.kind = kind;
    return {step};
  }

  std::optional<Steps> atom(int depth) {
    const uint32_t c = text_[at_++];
    switch (c) {
      case '(': {
        if (take('?') && !take(':')) return refuse("groups with a name or flags");
        std::optional<Steps> inner = alternatives(depth + 1);
        if (inner && !take(')')) return refuse("'(' without ')'");
        return inner;
      }
      case '[':
        return bracket();
      case '.':
        return one_of({{'\n', '\n'}}, true);
      case '^':
        return point(Kind::at_begin);
      case '$':
        return point(Kind::at_end);
      case '*':
      case '+':
      case '?':
        --at_;
        return refuse("nothing to repeat");
      case '\\':
        return escape();
      default:
        return one_of({{c, c}});
    }
  }

  // \d, \w, \s and their complements: ranges of a class. Nothing: not a class.
  static std::optional<std::vector<Regex::Range>> class_of(uint32_t c) {
    std::vector<Regex::Range> ranges;
    switch (c | 0x20) {
      case 'd':
        ranges = {{'0', '9'}};
        break;
      case 'w':
        ranges = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
        break;
      case 's':
        ranges = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
        break;
      default:
        return std::nullopt;
    }
    if (c & 0x20) return ranges;
    std::vector<Regex::Range> rest;
    uint32_t from = 0;
    for (const Regex::Range& range : ranges) {
      rest.push_back({from, range.first - 1});
      from = range.last + 1;
    }
    rest.push_back({from, kMostPoint});
    return rest;
  }

  std::optional<uint32_t> escaped_point() {
    const uint32_t c = text_[at_++];
    switch (c) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case 'a':
        return '\a';
      case 'x': {
        uint32_t value = 0;
        for (int i = 0; i < 2; ++i) {
          const uint32_t digit = more() ? text_[at_] : 0;
          if (digit >= '0' && digit <= '9')
            value = value * 16 + digit - '0';
          else if ((digit | 0x20) >= 'a' && (digit | 0x20) <= 'f')
            value = value * 16 + (digit | 0x20) - 'a' + 10;
          else
            return refuse("bad \\x");
          ++at_;
        }
        return value;
      }
      default:
        if (c < 0x80 && is_word(c)) return refuse("an escape that is not supported");
        return c;
    }
  }

  std::optional<Steps> escape() {
    if (!more()) return refuse("a backslash at the end");
    const uint32_t c = text_[at_];
    if (auto ranges = class_of(c)) return ++at_, one_of(std::move(*ranges));
    if (c == 'b' || c == 'B') return ++at_, point(c == 'b' ? Kind::at_word : Kind::not_at_word);
    if (c == 'A' || c == 'z') return ++at_, point(c == 'A' ? Kind::at_begin : Kind::at_end);
    const std::optional<uint32_t> literal = escaped_point();
    if (!literal) return std::nullopt;
    return one_of({{*literal, *literal}});
  }

  std::optional<Steps> bracket() {
    const bool inverse = take('^');
    std::vector<Regex::Range> ranges;
    for (bool first = true; first || !take(']'); first = false) {
      if (!more()) return refuse("'[' without ']'");
      if (text_[at_] == '[' && at_ + 1 < text_.size() && text_[at_ + 1] == ':')
        return refuse("a class by name");
      std::optional<uint32_t> from;
      if (take('\\')) {
        if (!more()) return refuse("a backslash at the end");
        if (auto shorthand = class_of(text_[at_])) {
          ++at_;
          ranges.insert(ranges.end(), shorthand->begin(), shorthand->end());
          continue;
        }
        from = escaped_point();
        if (!from) return std::nullopt;
      } else {
        from = text_[at_++];
      }
      uint32_t to = *from;
      if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        ++at_;
        const std::optional<uint32_t> last =
            take('\\') ? (more() ? escaped_point() : std::nullopt) : std::optional(text_[at_++]);
        if (!last || *last < *from) return refuse("a bad range");
        to = *last;
      }
      ranges.push_back({*from, to});
    }
    return one_of(std::move(ranges), inverse);
  }

  std::vector<uint32_t> text_;
  size_t at_ = 0;
  std::string error_;
};

Result<Regex> Regex::compile(std::string_view pattern) { return RegexParser(pattern).run(); }

// Simulates all paths at once: the set of steps reachable after the text so far.
bool Regex::matches_all(std::string_view text) const {
  const std::vector<uint32_t> points = tensor::code_points(text);
  std::vector<size_t> now{0}, next;
  std::vector<size_t> seen(steps_.size(), 0);
  for (size_t i = 0; i <= points.size(); ++i) {
    const bool before = i > 0 && is_word(points[i - 1]);
    const bool after = i < points.size() && is_word(points[i]);
    next.clear();
    const auto visit = [&](size_t step) {
      if (seen[step] == i + 1) return;
      seen[step] = i + 1;
      now.push_back(step);
    };
    std::vector<size_t> from;
    from.swap(now);
    for (size_t step : from) visit(step);
    for (size_t k = 0; k < now.size(); ++k) {
      const size_t at = now[k];
      const Step& step = steps_[at];
      const auto to = [&](int offset) {
        return static_cast<size_t>(static_cast<int64_t>(at) + offset);
      };
      switch (step.kind) {
        case Kind::match:
          if (i == points.size()) return true;
          break;
        case Kind::split:
          visit(to(step.next));
          visit(to(step.other));
          break;
        case Kind::jump:
          visit(to(step.next));
          break;
        case Kind::at_begin:
          if (i == 0) visit(at + 1);
          break;
        case Kind::at_end:
          if (i == points.size()) visit(at + 1);
          break;
        case Kind::at_word:
        case Kind::not_at_word:
          if ((before != after) == (step.kind == Kind::at_word)) visit(at + 1);
          break;
        case Kind::one_of: {
          if (i == points.size()) break;
          const bool in = std::any_of(step.ranges.begin(), step.ranges.end(), [&](const Range& r) {
            return points[i] >= r.first && points[i] <= r.last;
          });
          if (in != step.inverse) next.push_back(at + 1);
          break;
        }
      }
    }
    now.swap(next);
  }
  return false;
}

}  // namespace heddle::import
