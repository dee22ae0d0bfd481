// Parses MLIR text of StableHLO files: the generic form of any operation, and the pretty forms of
// the dialects in mlir_pretty.cc. Nesting is bounded; allocation is bounded by the text's size (a
// splat keeps a single element).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "import/mlir.h"
#include "import/mlir_lexer.h"

namespace heddle::import {

// Parses one part of a file (between `// -----` lines), whose first line has number `line`. Throws
// Failure: "line:column: got X, wanted Y".
MlirModule parse_mlir(std::string_view text, int line = 1);
// A single type with no text after it.
MlirType parse_mlir_type(std::string_view text);
// The element type of that name ("i32", "f8E4M3FN"), or null.
const tensor::Type* find_mlir_element(std::string_view name);

struct PrettyForm;

// The parser's parts are in mlir_parser.cc (operations), mlir_parser_types.cc,
// mlir_parser_attrs.cc, mlir_parser_dense.cc, mlir_pretty.cc and mlir_pretty_forms.cc.
class MlirParser {
 public:
  MlirParser(std::string_view text, int line) : lexer_(text, line) {}
  MlirModule parse();
  MlirType parse_type();

 private:
  static constexpr int kDeepest = 200;  // nested regions, attributes and types together
  static constexpr size_t kMostResults = 1 << 16;

  // Counts one level of nesting during its lifetime.
  class Level {
   public:
    explicit Level(MlirParser* parser) : parser_(parser) {
      if (++parser_->depth_ > kDeepest)
        parser_->lexer_.fail_at(parser_->token().begin, "nested deeper than {} levels", kDeepest);
    }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --parser_->depth_; }

   private:
    MlirParser* parser_;
  };

  // Tokens.
  const MlirToken& token() const { return lexer_.token(); }
  bool is(std::string_view text) const {  // a word, an arrow or a character
    return token().text == text &&
           (token().kind == MlirTokenKind::word || token().kind == MlirTokenKind::arrow ||
            token().kind == MlirTokenKind::other);
  }
  bool is(MlirTokenKind kind) const { return token().kind == kind; }
  bool take(std::string_view text);
  void expect(std::string_view text);
  std::string_view expect(MlirTokenKind kind, std::string_view wanted);
  int64_t expect_integer();
  // Calls `read` for each element of `open` … `close`, separated by commas; the list may be empty.
  template <typename Read>
  void list(std::string_view open, std::string_view close, Read read) {
    expect(open);
    if (take(close)) return;
    do read();
    while (take(","));
    expect(close);
  }

  // Operations: mlir_parser.cc.
  struct Name {
    MlirValue first;
    size_t count;
  };
  using Scope = std::unordered_map<std::string_view, Name>;
  void top_level();
  void alias();
  MlirOp operation();
  void generic(MlirOp& op);
  void generic_types(MlirOp& op);
  void regions(MlirOp& op);
  MlirRegion region(bool isolated);
  void block(MlirBlock& block, bool has_label);
  void block_arguments(MlirBlock& block);
  void module_op(MlirOp& op);
  void function(MlirOp& op);
  void function_arguments(MlirOp& op, MlirType& signature, MlirBlock& entry);
  void function_results(MlirType& signature);
  void location(MlirOp& op);
  std::string location_text();
  void mark(MlirOp& op, size_t position);
  MlirValue new_value(MlirType type);
  void define(std::string_view name, Name values, size_t position);
  MlirValue operand();
  std::vector<MlirValue> operands_until(std::string_view close);
  void make_results(MlirOp& op, std::vector<MlirType> types);

  // mlir_parser_types.cc
  MlirType type();
  MlirType tensor_type();
  MlirType dialect_type();
  MlirType quantized_type();
  void read_scales(Quantization& quantization);
  void tensor_encoding(MlirType& type);
  std::vector<MlirType> type_list();     // (a, b)
  std::vector<MlirType> result_types();  // a or (a, b)
  double number();                       // with a sign

  // mlir_parser_attrs.cc
  // `typed`: a `: type` after a number or a string belongs to it.
  MlirAttr attribute(bool typed = true);
  MlirAttr number_attribute(bool typed);
  MlirAttr array_attribute();
  MlirAttr typed_array();
  MlirAttr hash_attribute();
  void dialect_body(MlirAttr& attr);

  MlirAttr symbol_attribute();
  void convolution_dims(MlirAttr& attr);
  void dictionary(std::vector<std::pair<std::string, MlirAttr>>& fields);
  void optional_dictionary(MlirOp& op);

  // mlir_parser_dense.cc
  MlirAttr dense();
  MlirAttr dense_resource();
  void dense_elements(MlirAttr& attr, size_t begin, size_t end);
  struct DenseReader;

  // mlir_pretty.cc and mlir_pretty_forms.cc
  void pretty(MlirOp& op, size_t result_count, size_t position);
  void plain_form(MlirOp& op, const PrettyForm& form);
  void keyword(MlirOp& op, const PrettyForm& form);
  void pretty_types(MlirOp& op, const PrettyForm& form, size_t result_count);
  void constant_form(MlirOp& op);
  void compare_form(MlirOp& op);
  void slice_form(MlirOp& op);
  void element_form(MlirOp& op);
  void precision_form(MlirOp& op);
  void call_form(MlirOp& op);
  void custom_call_form(MlirOp& op);
  void composite_form(MlirOp& op);
  void dot_form(MlirOp& op, const PrettyForm& form);
  void convolution_form(MlirOp& op);
  void window(MlirOp& op);
  void reduce_form(MlirOp& op);
  void reduce_applies(MlirOp& op, std::string_view name);
  void reduce_body(MlirOp& op);
  void while_form(MlirOp& op);
  void scan_form(MlirOp& op);
  void mesh_form(MlirOp& op);
  void sharding_form(MlirOp& op);
  void manual_form(MlirOp& op);
  MlirAttr words_to_attr(std::string_view dialect_name);

  MlirLexer lexer_;
  MlirModule module_;
  std::vector<Scope> scopes_;
  std::vector<size_t> isolated_{0};  // scopes_ visible from here on
  std::map<std::string, MlirAttr, std::less<>> attr_aliases_;
  std::map<std::string, MlirType, std::less<>> type_aliases_;
  int depth_ = 0;
  size_t marked_ = 0, line_begin_ = 0;  // the last marked position, and its line
  int marked_line_ = 0;
};

}  // namespace heddle::import
