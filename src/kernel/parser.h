// The parser of kernel text; parse_kernel (text.h) is its entry. Grammar: README.md.
#pragma once

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "kernel/lexer.h"
#include "kernel/text.h"

namespace heddle::kernel {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  Result<Kernel> run();

 private:
  // Tokens. Errors carry the position of the current token.
  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  bool at(std::string_view s) const { return peek().is(s); }
  bool take(std::string_view s);
  Status expect(std::string_view s);
  template <typename... Args>
  tl::unexpected<Error> fail(fmt::format_string<Args...> format, Args&&... args) const {
    return fail_at(peek(), fmt::format(format, std::forward<Args>(args)...));
  }
  static tl::unexpected<Error> fail_at(const Token& token, std::string message) {
    return user_error("{}:{}: {}", token.line, token.column, message);
  }
  static std::string shown(const Token& token);
  Result<std::string> word(std::string_view what);  // an identifier
  Result<std::string> text_or_word(std::string_view what);
  Result<int64_t> integer(std::string_view what, int64_t low, int64_t high);
  Result<Type> type();

  // The kernel (parser.cc).
  Status header();
  Status buffer();
  Status contents();  // of a kernel, from its name on
  Status inner();
  Status phase();
  Result<Group> group();
  Result<Group> table();
  Result<std::string> new_name(std::string_view what);

  // Statements (parser.cc).
  Result<std::vector<Stmt>> block();
  Result<Stmt> statement();
  Result<Stmt> loop(LoopKind kind);
  Result<Stmt> let();
  Result<Stmt> store();
  Result<Stmt> branch();
  Result<Stmt> prefetch();
  Result<Stmt> async_copy();
  Result<Stmt> mma();
  Status abbreviation();  // $n = expression
  struct Access {
    BufferId buffer;
    std::vector<ExprId> indices;
  };
  Result<Access> fragment_access();  // without the registers' own index
  Result<Stmt> move_fragment(StmtKind kind);
  Result<Access> access();

  // Expressions (parse_expr.cc).
  Result<ExprId> expression();
  Result<ExprId> additive();
  Result<ExprId> multiplicative();
  Result<ExprId> primary();
  Result<ExprId> named();
  Result<ExprId> call();
  Result<ExprId> load_if();
  Result<ExprId> literal();
  Result<ExprId> infix(Op op, ExprId left, ExprId right, const Token& where);

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;  // of blocks and expressions
  bool is_inner_ = false;
  Kernel kernel_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, BufferId> buffers_;
  std::unordered_map<std::string, VarId> visible_;
  std::vector<std::string> scope_;  // the visible, innermost last
  std::unordered_map<std::string, int64_t> dims_;
  std::unordered_map<int64_t, ExprId> abbreviations_;
};

}  // namespace heddle::kernel
