// The parser of HLO text, internal to text.cc. Recursive descent on a Lexer; nested constructs
// (shapes, operands, inline computations) are counted against a depth limit.
//
// parser_module.cc: module, header, source tables, computations. parser_instr.cc: instructions and
// operands. parser_attrs.cc: attribute lists. parser_shape.cc: shapes. parser_literal.cc: literals.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "hlo/attr_reader.h"
#include "hlo/lexer.h"
#include "hlo/module.h"

namespace heddle::hlo {

inline constexpr int kMaxTextDepth = 1000;
// An inline computation uses as much stack as several operands.
inline constexpr int kComputationDepth = 10;
// Limit, per file, on the bytes of values written as {...}, which have more elements than text.
inline constexpr int64_t kMaxTextlessBytes = int64_t{1} << 30;
// Limit, per file, on shapes (counting elements of tuples) that are inferred or copied.
inline constexpr int64_t kMaxInferredParts = int64_t{1} << 20;
// Limit for one array; far above any memory, far below an overflow of sums.
inline constexpr int64_t kMaxArrayBytes = int64_t{1} << 46;

class Parser {
 public:
  Parser(std::string_view text, size_t begin, size_t end) : lexer_(text, begin, end) {}
  explicit Parser(std::string_view text) : Parser(text, 0, text.size()) {}

  // One module; stops at the end of the text or before a further `HloModule`.
  Result<std::unique_ptr<Module>> module();
  bool at_end() { return lexer_.at_end(); }
  Status expect_end(std::string_view what);

  Result<Shape> shape();
  Result<Literal> literal(const Shape& shape);
  bool elided() const { return elided_; }  // the last literal was written as {...}

 private:
  // Names and elements known inside one computation.
  struct Scope {
    Computation* computation = nullptr;
    std::unordered_map<std::string_view, Instr*> names;
    std::map<std::pair<Instr*, int64_t>, Instr*> elements;  // of `%t#0`
    Instr* root = nullptr;
    bool makes_parameters = false;  // single-instruction mode
  };
  // An instruction being parsed.
  struct Draft {
    size_t offset = 0;
    std::string_view name;  // empty: none was written
    Opcode opcode = Opcode::parameter;
    enum class Sugar : uint8_t { none, start, update, done } sugar = Sugar::none;
    std::optional<Shape> shape;
    std::vector<Instr*> operands;
    Attrs special;  // of parameter and constant: written between the parentheses
    AttrList attrs;
    std::string what() const;  // "%name (opcode)" for messages
  };
  class Nesting;

  // parser_module.cc
  Status header(Module& module);
  Status header_attr(Module& module, std::string_view key, size_t at);
  Status aliases(Module& module);
  Status entry_layout(Module& module);
  Status source_tables(Module& module);
  bool is_single_instruction();
  Status single_instruction(Module& module);
  Status computation(Module& module);
  Result<Computation*> body(Computation* computation);
  Status check_parameters(const Computation& computation, size_t at);
  Status signature(std::optional<Shape>& result);
  Status check_entry_layout(const Module& module);
  Result<Computation*> callee(std::string_view owner, std::string_view key);

  // parser_instr.cc
  Status instruction(Scope& scope);
  Result<Instr*> nested_instruction(Scope& scope, std::optional<Shape> shape);
  Status call(Scope& scope, Draft& draft);
  Result<Opcode> opcode(Draft& draft);
  Status special_operand(Draft& draft);
  Result<Instr*> operand(Scope& scope);
  Result<Instr*> element(Scope& scope, Instr* tuple, int64_t index, size_t at);
  Result<Instr*> missing_operand(Scope& scope, std::string_view name, const Shape* shape,
                                 size_t at);
  Status attr_list(const Scope& scope, Draft& draft);
  Status attr_value(const Scope& scope, Draft& draft, AttrEntry& entry);
  Status predecessors(const Scope& scope, AttrList& list);
  Status callees(const Draft& draft, AttrEntry& entry);
  Instr* append(Scope& scope, Draft& draft, Opcode opcode, Attrs attrs,
                std::vector<Computation*> called);
  Result<Instr*> finish(Scope& scope, Draft& draft);
  Result<Instr*> finish_async(Scope& scope, Draft& draft);
  Status check_arity(const Draft& draft);

  // parser_shape.cc
  Result<Shape> array_shape(Type type);
  Result<tensor::Layout> layout();
  Status layout_part(tensor::Layout& layout, std::vector<std::pair<int, std::string>>& rest);
  bool shape_is_next();
  Status count_inferred(std::span<const Shape* const> shapes, size_t at);
  Status count_inferred(const Shape& shape, size_t at) {
    const Shape* one = &shape;
    return count_inferred(std::span(&one, 1), at);
  }

  // parser_literal.cc
  Result<Literal> literal_value(const Shape& shape);
  Result<Literal> array_literal(const Shape& shape);
  bool accept_elided();
  Status count_textless_bytes(const Shape& shape, size_t at);
  Status braced_elements(Literal& out);
  Status skip_empty_braces();
  Status element_value(Literal& out, int64_t i);
  Result<uint64_t> float_bits(Type type);
  Result<uint64_t> nan_bits(Type type, bool negative);
  Result<uint64_t> integer_bits(Type type);

  Lexer lexer_;
  Module* module_ = nullptr;
  std::unordered_map<std::string_view, Computation*> computations_;
  std::string_view last_name_;  // of the computation parsed last
  int depth_ = 0;
  int64_t textless_bytes_ = 0, inferred_parts_ = 0;
  bool elided_ = false;
};

// Counts nesting levels during its lifetime.
class Parser::Nesting {
 public:
  Nesting(Parser& parser, int steps) : parser_(parser), steps_(steps) { parser_.depth_ += steps_; }
  ~Nesting() { parser_.depth_ -= steps_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  Status check() {
    if (parser_.depth_ <= kMaxTextDepth) return {};
    return parser_.lexer_.error_at(parser_.lexer_.offset(),
                                   "nested too deeply (more than {} levels)", kMaxTextDepth);
  }

 private:
  Parser& parser_;
  int steps_;
};

}  // namespace heddle::hlo
