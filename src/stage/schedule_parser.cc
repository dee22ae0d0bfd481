// The inverse of schedule_text.cc.
#include <algorithm>
#include <charconv>

#include "stage/records.h"
#include "stage/schedule.h"

namespace heddle::stage {

namespace {

constexpr int kMostDepth = 64;

class Parser {
 public:
  Parser(std::string_view text, const StageGraph& graph) : text_(text), graph_(graph) { next(); }

  Result<Schedule> parse() {
    Schedule schedule;
    schedule_ = &schedule;
    expect("schedule");
    schedule.name = word();
    expect("on");
    schedule.target = word();
    while (ok() && token_ == "phase") phase();
    if (ok() && !token_.empty()) fail("the end");
    if (!ok()) return tl::unexpected<Error>(error_);
    return schedule;
  }

  // Parses a text that is one record.
  template <typename Record>
  Result<Record> parse_record(Record (Parser::*read)()) {
    Record result = (this->*read)();
    if (ok() && !token_.empty()) fail("the end");
    if (!ok()) return tl::unexpected<Error>(error_);
    return result;
  }

  Winograd winograd() {
    Winograd result;
    expect("winograd");
    result.m = static_cast<int>(number());
    if (result.m != 2 && result.m != 4) fail("2 or 4 outputs a side");
    expect("tile");
    tile(&result.tile);
    expect("lanes");
    result.tile.lanes = static_cast<int>(number());
    expect("ku");
    result.tile.ku = static_cast<int>(number());
    expect("prefetch");
    result.tile.prefetch = static_cast<int>(number());
    expect("lines");
    result.lines = number();
    expect("columns");
    result.columns = number();
    return result;
  }

  Gemm gemm() {
    Gemm result;
    expect("gemm");
    tile(&result);
    expect("lanes");
    result.lanes = static_cast<int>(number());
    expect("kc");
    result.kc = number();
    expect("ku");
    result.ku = static_cast<int>(number());
    expect("prefetch");
    result.prefetch = static_cast<int>(number());
    expect("rows");
    result.m_block = number();
    if (accept("panels")) result.panels = std::clamp<int64_t>(number(), 0, 1 << 20);
    if (accept("lines")) {
      result.my = static_cast<int>(std::clamp<int64_t>(number(), 1, 1024));
      expect("of");
      result.y_block = number();
    }
    result.copy_b = accept("copy_b");
    if (accept("shared")) result.shared = std::clamp<int64_t>(number(), 1, 1 << 20);
    result.panels_first = accept("panels_first");
    result.mma = mma();
    if (accept("tile")) {
      result.tile = kernel::find_mma(word());
      if (result.tile && (!result.tile->is_tile() || result.tile->a != result.mma->a ||
                          result.tile->b != result.mma->b))
        result.tile = nullptr;
      if (!result.tile) fail("an instruction on tiles with the operands of mma, such as tdpbusd");
    }
    return result;
  }

 private:
  const kernel::MmaDescriptor* mma() {
    if (!accept("mma")) return kernel::plain_mma();
    const kernel::MmaDescriptor* found = kernel::find_mma(word());
    if (found && found->is_dot()) return found;
    fail("an instruction of one lane, such as dpbusd");
    return kernel::plain_mma();
  }

  bool ok() const { return error_.message.empty(); }

  void fail(const std::string& wanted) {
    if (!ok()) return;
    int64_t line = 1 + std::count(text_.begin(), text_.begin() + static_cast<long>(start_), '\n');
    error_ = {ErrorKind::user, fmt::format("schedule, line {}: got '{}', wanted {}", line,
                                           token_.substr(0, 40), wanted)};
  }

  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '#';
  }

  void next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    start_ = at_;
    if (at_ < text_.size() && is_word(text_[at_])) {
      while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    } else if (at_ < text_.size()) {
      ++at_;
    }
    token_ = text_.substr(start_, at_ - start_);
  }

  bool accept(std::string_view token) {
    if (!ok() || token_ != token) return false;
    next();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail(fmt::format("'{}'", token));
  }
  std::string word() {
    if (token_.empty() || !is_word(token_[0])) fail("a name");
    std::string result(token_);
    if (ok()) next();
    return result;
  }
  int64_t number() {
    int64_t value = 0;
    auto [end, code] = std::from_chars(token_.data(), token_.data() + token_.size(), value);
    if (code != std::errc() || end != token_.data() + token_.size() || value < 0) fail("a number");
    if (ok()) next();
    return value;
  }
  int64_t by() {
    if (!accept("/")) return 1;
    int64_t value = number();
    if (value < 1) fail("a step of at least 1");
    return std::max<int64_t>(value, 1);
  }

  StageId stage(std::string_view name) {
    for (size_t i = 0; i < graph_.stages.size(); ++i)
      if (graph_.stages[i].name == name) return StageId(i);
    fail("a stage of the graph");
    return {};
  }
  int digit(StageId id, std::string_view name) {
    if (!id.valid()) return 0;
    const Stage& s = graph_.stage(id);
    for (size_t d = 0; d < s.out.size() + s.red.size(); ++d) {
      const Digit& one = d < s.out.size() ? s.out[d] : s.red[d - s.out.size()];
      if (one.name == name) return static_cast<int>(d);
    }
    fail(fmt::format("a digit of {}", s.name));
    return 0;
  }

  bool loop_kind(LoopKind* kind) {
    for (int k = 0; k <= static_cast<int>(LoopKind::parallel); ++k) {
      if (token_ != loop_kind_name(static_cast<LoopKind>(k))) continue;
      *kind = static_cast<LoopKind>(k);
      next();
      return true;
    }
    return false;
  }

  void phase() {
    expect("phase");
    expect("{");
    std::vector<Group> groups;
    while (ok() && token_ == "group") {
      next();
      Group group;
      expect("lanes");
      group.lanes = static_cast<int>(std::clamp<int64_t>(number(), 1, 1024));
      group.body = body(0);
      groups.push_back(std::move(group));
    }
    expect("}");
    schedule_->phases.push_back(std::move(groups));
  }

  std::vector<int> body(int depth) {
    std::vector<int> result;
    expect("{");
    if (depth > kMostDepth) fail("less nesting");
    while (ok() && token_ != "}") {
      ScheduleNode node = token_ == "for" ? ScheduleNode(loop(depth)) : ScheduleNode(row());
      result.push_back(static_cast<int>(schedule_->nodes.size()));
      schedule_->nodes.push_back(std::move(node));
    }
    expect("}");
    return result;
  }

  Loop loop(int depth) {
    Loop result;
    expect("for");
    result.var = word();
    if (!loop_kind(&result.kind)) fail("a kind of loop");
    do {
      std::string name = word();
      size_t dot = name.rfind('.');
      if (dot == std::string::npos) fail("stage.digit");
      if (!ok()) return result;
      Drive drive;
      drive.stage = stage(name.substr(0, dot));
      drive.digit = digit(drive.stage, name.substr(dot + 1));
      drive.by = by();
      if (!ok()) return result;
      int64_t extent = graph_.stage(drive.stage).extents()[drive.digit];
      // A digit may be driven by several loops, each over a part of it.
      const int64_t trips = (extent + drive.by - 1) / drive.by;
      result.trips = result.drives.empty() ? trips : std::min(result.trips, trips);
      result.drives.push_back(drive);
    } while (accept(","));
    result.body = body(depth + 1);
    return result;
  }

  Row row() {
    Row result;
    do {
      result.joined.push_back(stage(word()));
    } while (accept("&"));
    if (accept(":")) {
      if (token_ == "gemm") {
        result.kind = GemmTile{gemm(), {}, {}};
      } else if (token_ == "winograd") {
        result.kind = WinogradTile{winograd(), {}};
      } else {
        own(&result);
        if (accept("width")) result.width = static_cast<int>(std::clamp<int64_t>(number(), 1, 16));
        result.kind = Nest{mma()};
      }
    }
    expect(";");
    return result;
  }

  void own(Row* row) {
    LoopKind kind;
    while (ok() && loop_kind(&kind)) {
      Own one;
      one.kind = kind;
      do {
        if (one.digits.size() >= row->joined.size()) return fail("one digit a stage");
        if (!one.digits.empty() && accept("-")) {  // comes after this loop
          one.digits.push_back(-1);
          continue;
        }
        one.digits.push_back(digit(row->joined[one.digits.size()], word()));
      } while (accept(","));
      if (one.digits.size() != row->joined.size()) return fail("one digit a stage");
      one.by = by();
      row->own.push_back(std::move(one));
    }
  }

  void tile(Gemm* result) {
    std::string tile = word();
    size_t x = tile.find('x');
    if (x == std::string::npos ||
        std::from_chars(tile.data(), tile.data() + x, result->mr).ec != std::errc() ||
        std::from_chars(tile.data() + x + 1, tile.data() + tile.size(), result->nv).ec !=
            std::errc() ||
        result->mr < 1 || result->nv < 1)
      fail("a tile such as 8x3");
  }

  std::string_view text_, token_;
  const StageGraph& graph_;
  Schedule* schedule_ = nullptr;
  size_t at_ = 0, start_ = 0;
  Error error_;
};

}  // namespace

Result<Schedule> parse_schedule(std::string_view text, const StageGraph& graph) {
  return Parser(text, graph).parse();
}

Result<Gemm> parse_gemm(std::string_view text) {
  return Parser(text, StageGraph()).parse_record(&Parser::gemm);
}

Result<Winograd> parse_winograd(std::string_view text) {
  return Parser(text, StageGraph()).parse_record(&Parser::winograd);
}

}  // namespace heddle::stage
