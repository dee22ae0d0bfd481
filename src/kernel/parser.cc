#include "kernel/parser.h"

#include <charconv>
#include <limits>

#include "kernel/stmt_text.h"

namespace heddle::kernel {
namespace {

constexpr int kMaxDepth = 200;
constexpr int64_t kMaxInt = std::numeric_limits<int64_t>::max();

template <typename Enum>
std::optional<Enum> enum_from(std::string_view text, std::string_view (*name)(Enum), int count) {
  for (int i = 0; i < count; ++i) {
    if (name(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

bool Parser::take(std::string_view s) {
  if (!at(s)) return false;
  ++at_;
  return true;
}

Status Parser::expect(std::string_view s) {
  if (take(s)) return {};
  return fail("expected '{}', got {}", s, shown(peek()));
}

std::string Parser::shown(const Token& token) {
  if (token.kind == TokenKind::end) return "the end of the text";
  return fmt::format("'{}'", token.spelling.substr(0, 40));
}

Result<std::string> Parser::word(std::string_view what) {
  if (peek().kind != TokenKind::identifier) return fail("expected {}, got {}", what, shown(peek()));
  return std::string(tokens_[at_++].spelling);
}

Result<std::string> Parser::text_or_word(std::string_view what) {
  if (peek().kind == TokenKind::text) return unquote(tokens_[at_++]);
  return word(what);
}

Result<int64_t> Parser::integer(std::string_view what, int64_t low, int64_t high) {
  bool negative = low < 0 && take("-");
  const Token& token = peek();
  int64_t value = 0;
  const char* end = token.spelling.data() + token.spelling.size();
  auto [stop, error] = std::from_chars(token.spelling.data(), end, value);
  if (negative) value = -value;
  if (token.kind != TokenKind::integer || error != std::errc() || stop != end || value < low ||
      value > high) {
    return fail("expected {} from {} to {}, got {}", what, low, high, shown(token));
  }
  ++at_;
  return value;
}

Result<Type> Parser::type() {
  auto found =
      peek().kind == TokenKind::identifier ? tensor::type_from_name(peek().spelling) : std::nullopt;
  if (!found) return fail("expected an element type, got {}", shown(peek()));
  ++at_;
  return *found;
}

Result<std::string> Parser::new_name(std::string_view what) {
  HEDDLE_ASSIGN_OR_RETURN(std::string name, word(what));
  if (name == "true" || name == "false") {
    return fail_at(tokens_[at_ - 1], fmt::format("'{}' cannot name anything", name));
  }
  if (!names_.insert(name).second) {
    return fail_at(tokens_[at_ - 1],
                   fmt::format("'{}' is defined twice; names are unique in a kernel", name));
  }
  return name;
}

Result<Kernel> Parser::run() {
  if (!(take("heddle.kernel") && take("1"))) {
    return fail("the first line must be 'heddle.kernel 1', got {}", shown(peek()));
  }
  HEDDLE_RETURN_IF_ERROR(expect("kernel"));
  HEDDLE_RETURN_IF_ERROR(contents());
  if (peek().kind != TokenKind::end) return fail("text after the kernel's end: {}", shown(peek()));
  return std::move(kernel_);
}

Status Parser::contents() {
  HEDDLE_ASSIGN_OR_RETURN(kernel_.name, text_or_word("the kernel's name"));
  HEDDLE_RETURN_IF_ERROR(expect("{"));
  HEDDLE_RETURN_IF_ERROR(header());
  while (take("buffer")) HEDDLE_RETURN_IF_ERROR(buffer());
  while (take("inner")) HEDDLE_RETURN_IF_ERROR(inner());
  while (take("phase")) HEDDLE_RETURN_IF_ERROR(phase());
  return expect("}");
}

// An inner kernel has its own names. Its parser borrows the tokens.
Status Parser::inner() {
  if (is_inner_) return fail("an inner kernel has no inner one");
  Parser parser(std::move(tokens_));
  parser.at_ = at_;
  parser.is_inner_ = true;
  Status status = parser.contents();
  tokens_ = std::move(parser.tokens_);
  at_ = parser.at_;
  HEDDLE_RETURN_IF_ERROR(status);
  kernel_.inner.push_back(std::move(parser.kernel_));
  return {};
}

Status Parser::header() {
  if (take("target")) {
    HEDDLE_ASSIGN_OR_RETURN(kernel_.target, text_or_word("a target"));
  }
  if (take("strategy")) {
    HEDDLE_ASSIGN_OR_RETURN(kernel_.strategy, text_or_word("a strategy"));
  }
  for (bool first = true; take("schedule"); first = false) {
    HEDDLE_ASSIGN_OR_RETURN(std::string line, text_or_word("a line of the schedule"));
    kernel_.schedule += (first ? "" : "\n") + line;
  }
  if (take("dims")) {
    do {
      HEDDLE_ASSIGN_OR_RETURN(std::string name, new_name("a dimension"));
      dims_.emplace(name, static_cast<int64_t>(kernel_.dims.size()));
      kernel_.dims.push_back(name);
    } while (take(","));
  }
  if (take("scratch")) {
    HEDDLE_ASSIGN_OR_RETURN(kernel_.scratch_bytes, integer("a number of bytes", 0, kMaxInt));
  }
  return {};
}

Status Parser::buffer() {
  Buffer buffer;
  HEDDLE_ASSIGN_OR_RETURN(buffer.name, new_name("a buffer's name"));
  HEDDLE_RETURN_IF_ERROR(expect(":"));
  HEDDLE_ASSIGN_OR_RETURN(buffer.type, type());
  HEDDLE_RETURN_IF_ERROR(expect("["));
  while (!at("]")) {
    if (auto it = dims_.find(std::string(peek().spelling)); it != dims_.end()) {
      buffer.extents.push_back(-1 - it->second);
      ++at_;
    } else {
      HEDDLE_ASSIGN_OR_RETURN(int64_t extent, integer("an extent", 0, kMaxInt));
      buffer.extents.push_back(extent);
    }
    if (!take(",")) break;
  }
  HEDDLE_RETURN_IF_ERROR(expect("]"));
  auto space = enum_from<Space>(peek().spelling, space_text, 4);
  if (!space) return fail("expected reg, fragment, scratch or global, got {}", shown(peek()));
  ++at_;
  buffer.space = *space;
  if (buffer.space == Space::global) {
    auto access = enum_from<heddle::kernel::Access>(peek().spelling, access_text, 3);
    if (!access) return fail("expected in, out or inout, got {}", shown(peek()));
    ++at_;
    buffer.access = *access;
  }
  if (take("lanes")) {
    HEDDLE_ASSIGN_OR_RETURN(int64_t lanes, integer("a number of lanes", 1, 1 << 20));
    buffer.lanes = static_cast<int>(lanes);
  }
  if (take("at")) {
    HEDDLE_ASSIGN_OR_RETURN(buffer.offset_bytes, integer("an offset", 0, kMaxInt));
  }
  if (take("aligned")) {
    HEDDLE_ASSIGN_OR_RETURN(buffer.aligned_bytes, integer("an alignment", 1, 1 << 30));
  }
  buffers_.emplace(buffer.name, kernel_.add_buffer(buffer));
  return {};
}

Status Parser::phase() {
  kernel_.phases.emplace_back();
  kernel_.phases.back().in_order = take("in_order");
  HEDDLE_RETURN_IF_ERROR(expect("{"));
  while (!take("}")) {
    if (at("$")) {
      HEDDLE_RETURN_IF_ERROR(abbreviation());
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(Group result, at("table") ? table() : group());
    kernel_.phases.back().groups.push_back(std::move(result));
  }
  return {};
}

Result<Group> Parser::table() {
  HEDDLE_RETURN_IF_ERROR(expect("table"));
  const Token& where = peek();
  HEDDLE_ASSIGN_OR_RETURN(const std::string name, text_or_word("an inner kernel's name"));
  Group group;
  for (size_t i = 0; i < kernel_.inner.size() && group.inner < 0; ++i)
    if (kernel_.inner[i].name == name) group.inner = static_cast<int>(i);
  if (group.inner < 0) return fail_at(where, fmt::format("unknown inner kernel '{}'", name));
  HEDDLE_RETURN_IF_ERROR(expect("phase"));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t phase, integer("a phase", 0, 1 << 20));
  group.inner_phase = static_cast<int>(phase);
  HEDDLE_RETURN_IF_ERROR(expect("{"));
  while (take("row")) {
    Instance& row = group.table.emplace_back();
    HEDDLE_RETURN_IF_ERROR(expect("("));
    while (!at(")")) {
      HEDDLE_ASSIGN_OR_RETURN(const std::string buffer, word("a buffer"));
      const auto known = buffers_.find(buffer);
      if (known == buffers_.end())
        return fail_at(tokens_[at_ - 1], fmt::format("unknown buffer '{}'", buffer));
      row.buffers.push_back(known->second);
      if (!take(",")) break;
    }
    HEDDLE_RETURN_IF_ERROR(expect(")"));
    if (!take("dims")) continue;
    do {
      HEDDLE_ASSIGN_OR_RETURN(const int64_t dim, integer("a dimension", 0, kMaxInt));
      row.dims.push_back(dim);
    } while (take(","));
  }
  HEDDLE_RETURN_IF_ERROR(expect("}"));
  return group;
}

Result<Group> Parser::group() {
  HEDDLE_RETURN_IF_ERROR(expect("group"));
  Group group;
  size_t outside = scope_.size();
  std::vector<std::pair<Token, std::string>> names;  // bound after the extents are read
  if (take("grid")) {
    HEDDLE_RETURN_IF_ERROR(expect("("));
    do {
      GridDim dim;
      Token where = peek();
      HEDDLE_ASSIGN_OR_RETURN(std::string name, new_name("a grid variable"));
      HEDDLE_ASSIGN_OR_RETURN(dim.extent, expression());
      dim.var = kernel_.add_var(name);
      names.emplace_back(where, name);
      group.grid.push_back(dim);
    } while (take(","));
    HEDDLE_RETURN_IF_ERROR(expect(")"));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    visible_[names[i].second] = group.grid[i].var;
    scope_.push_back(names[i].second);
  }
  if (take("threads")) {
    HEDDLE_ASSIGN_OR_RETURN(int64_t threads, integer("a number of threads", 1, 1 << 20));
    group.block_threads = static_cast<int>(threads);
  }
  HEDDLE_ASSIGN_OR_RETURN(group.body, block());
  for (; scope_.size() > outside; scope_.pop_back()) visible_.erase(scope_.back());
  return group;
}

Result<std::vector<Stmt>> Parser::block() {
  if (++depth_ > kMaxDepth) return fail("blocks nest more than {} deep", kMaxDepth);
  HEDDLE_RETURN_IF_ERROR(expect("{"));
  size_t outside = scope_.size();
  std::vector<Stmt> body;
  while (!take("}")) {
    if (at("$")) {
      HEDDLE_RETURN_IF_ERROR(abbreviation());
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(Stmt stmt, statement());
    body.push_back(std::move(stmt));
  }
  for (; scope_.size() > outside; scope_.pop_back()) visible_.erase(scope_.back());
  --depth_;
  return body;
}

Result<Stmt> Parser::statement() {
  const Token& token = peek();
  if (token.kind != TokenKind::identifier)
    return fail("expected a statement, got {}", shown(token));
  if (peek(1).is("[")) return store();
  if (auto kind = enum_from<LoopKind>(token.spelling, loop_text, 7)) {
    ++at_;
    return loop(*kind);
  }
  if (take("let")) return let();
  if (take("if")) return branch();
  if (take("prefetch")) return prefetch();
  if (take("async_copy")) return async_copy();
  if (take("mma")) return mma();
  if (take("fragment_clear")) return move_fragment(StmtKind::fragment_clear);
  if (take("fragment_load")) return move_fragment(StmtKind::fragment_load);
  if (take("fragment_store")) return move_fragment(StmtKind::fragment_store);
  if (take("barrier")) return Stmt{StmtKind::barrier};
  if (take("async_wait")) {
    Stmt stmt{StmtKind::async_wait};
    HEDDLE_ASSIGN_OR_RETURN(stmt.count, integer("a number of groups", 0, kMaxInt));
    return stmt;
  }
  return fail("unknown statement {}", shown(token));
}

Result<Stmt> Parser::loop(LoopKind kind) {
  HEDDLE_ASSIGN_OR_RETURN(std::string name, new_name("a loop variable"));
  HEDDLE_ASSIGN_OR_RETURN(ExprId extent, expression());
  int64_t lanes = 0, unroll = 1;
  if (take("lanes")) {
    HEDDLE_ASSIGN_OR_RETURN(lanes, integer("a number of lanes", 1, 1 << 20));
  }
  if (take("unroll")) {
    HEDDLE_ASSIGN_OR_RETURN(unroll, integer("a number of copies", 1, 4096));
  }
  VarId var = kernel_.add_var(name);
  visible_[name] = var;
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Stmt> body, block());
  visible_.erase(name);
  return make_loop(kind, var, extent, std::move(body), static_cast<int>(lanes),
                   static_cast<int>(unroll));
}

Result<Stmt> Parser::let() {
  HEDDLE_ASSIGN_OR_RETURN(std::string name, new_name("a name"));
  HEDDLE_RETURN_IF_ERROR(expect("="));
  HEDDLE_ASSIGN_OR_RETURN(ExprId value, expression());
  VarId var = kernel_.add_var(name, kernel_.expr(value).type);
  visible_[name] = var;
  scope_.push_back(name);
  return make_let(var, value);
}

Result<Stmt> Parser::store() {
  HEDDLE_ASSIGN_OR_RETURN(Access target, access());
  HEDDLE_RETURN_IF_ERROR(expect("="));
  HEDDLE_ASSIGN_OR_RETURN(ExprId value, expression());
  Stmt stmt = make_store(target.buffer, std::move(target.indices), value);
  // An `if` on the next line is a statement of its own.
  if (at("if") && peek().line == tokens_[at_ - 1].line) {
    ++at_;
    HEDDLE_ASSIGN_OR_RETURN(stmt.mask, expression());
  }
  stmt.streaming = take("streaming");
  return stmt;
}

Result<Stmt> Parser::branch() {
  HEDDLE_ASSIGN_OR_RETURN(ExprId condition, expression());
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Stmt> then, block());
  std::vector<Stmt> otherwise;
  if (take("else")) {
    HEDDLE_ASSIGN_OR_RETURN(otherwise, block());
  }
  return make_if(condition, std::move(then), std::move(otherwise));
}

Result<Stmt> Parser::prefetch() {
  HEDDLE_ASSIGN_OR_RETURN(Access target, access());
  Stmt stmt{StmtKind::prefetch};
  stmt.buffer = target.buffer;
  stmt.indices = std::move(target.indices);
  if (take("level")) {
    HEDDLE_ASSIGN_OR_RETURN(int64_t level, integer("a cache level", 1, 3));
    stmt.level = static_cast<int>(level);
  }
  stmt.for_write = take("write");
  return stmt;
}

Result<Stmt> Parser::async_copy() {
  Stmt stmt{StmtKind::async_copy};
  HEDDLE_ASSIGN_OR_RETURN(Access to, access());
  HEDDLE_RETURN_IF_ERROR(expect("from"));
  HEDDLE_ASSIGN_OR_RETURN(Access from, access());
  HEDDLE_RETURN_IF_ERROR(expect("count"));
  HEDDLE_ASSIGN_OR_RETURN(stmt.count, integer("a number of elements", 1, kMaxInt));
  stmt.buffer = to.buffer;
  stmt.indices = std::move(to.indices);
  stmt.source = from.buffer;
  stmt.source_indices = std::move(from.indices);
  return stmt;
}

Result<Stmt> Parser::mma() {
  Stmt stmt{StmtKind::mma};
  HEDDLE_ASSIGN_OR_RETURN(stmt.name, word("the name of a matrix instruction"));
  do {
    HEDDLE_ASSIGN_OR_RETURN(Access fragment, fragment_access());
    stmt.fragments.push_back(fragment.buffer);
    stmt.indices.insert(stmt.indices.end(), fragment.indices.begin(), fragment.indices.end());
  } while (take(","));
  return stmt;
}

Result<Parser::Access> Parser::fragment_access() {
  HEDDLE_ASSIGN_OR_RETURN(Access fragment, access());
  size_t rank = kernel_.buffer(fragment.buffer).extents.size();
  if (fragment.indices.size() + 1 != rank) {
    return fail("fragment '{}' of rank {} takes {} indices here, got {}",
                kernel_.buffer(fragment.buffer).name, rank, static_cast<int64_t>(rank) - 1,
                fragment.indices.size());
  }
  return fragment;
}

Result<Stmt> Parser::move_fragment(StmtKind kind) {
  Stmt stmt{kind};
  Access fragment, memory;
  if (kind != StmtKind::fragment_store) {
    HEDDLE_ASSIGN_OR_RETURN(fragment, fragment_access());
  }
  if (kind != StmtKind::fragment_clear) {
    if (kind == StmtKind::fragment_load) HEDDLE_RETURN_IF_ERROR(expect("from"));
    HEDDLE_ASSIGN_OR_RETURN(memory, access());
    stmt.buffer = memory.buffer;
    stmt.indices = std::move(memory.indices);
  }
  if (kind == StmtKind::fragment_store) {
    HEDDLE_RETURN_IF_ERROR(expect("from"));
    HEDDLE_ASSIGN_OR_RETURN(fragment, fragment_access());
  }
  stmt.fragments = {fragment.buffer};
  stmt.source_indices = std::move(fragment.indices);
  if (kind == StmtKind::fragment_clear) return stmt;
  HEDDLE_RETURN_IF_ERROR(expect("rows"));
  HEDDLE_ASSIGN_OR_RETURN(stmt.count, integer("a number of rows", 1, 4096));
  HEDDLE_RETURN_IF_ERROR(expect("stride"));
  HEDDLE_ASSIGN_OR_RETURN(stmt.stride, integer("a number of elements", 0, kMaxInt));
  return stmt;
}

Status Parser::abbreviation() {
  HEDDLE_RETURN_IF_ERROR(expect("$"));
  HEDDLE_ASSIGN_OR_RETURN(int64_t number, integer("a number", 0, 1 << 30));
  HEDDLE_RETURN_IF_ERROR(expect("="));
  HEDDLE_ASSIGN_OR_RETURN(abbreviations_[number], expression());
  return {};
}

Result<Parser::Access> Parser::access() {
  Access result;
  HEDDLE_ASSIGN_OR_RETURN(std::string name, word("a buffer"));
  auto it = buffers_.find(name);
  if (it == buffers_.end()) {
    return fail_at(tokens_[at_ - 1], fmt::format("unknown buffer '{}'", name));
  }
  result.buffer = it->second;
  HEDDLE_RETURN_IF_ERROR(expect("["));
  while (!at("]")) {
    HEDDLE_ASSIGN_OR_RETURN(ExprId index, expression());
    result.indices.push_back(index);
    if (!take(",")) break;
  }
  HEDDLE_RETURN_IF_ERROR(expect("]"));
  return result;
}

Result<Kernel> parse_kernel(std::string_view text) {
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Token> tokens, tokenize(text));
  return Parser(std::move(tokens)).run();
}

}  // namespace heddle::kernel
