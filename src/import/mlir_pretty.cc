// The table of pretty forms, and the parser of those with only operands and keywords.
#include "import/mlir_pretty.h"

#include <algorithm>
#include <string>

#include "import/mlir_parser.h"

namespace heddle::import {
namespace {

using Syntax = PrettyForm::Syntax;

constexpr PrettyForm plain(std::string_view name, std::array<PrettyKeyword, 4> keywords = {},
                           PrettyTypes types = PrettyTypes::last) {
  return {name, Syntax::plain, types, keywords};
}
constexpr PrettyForm special(std::string_view name, Syntax syntax,
                             PrettyTypes types = PrettyTypes::last) {
  return {name, syntax, types, {}};
}

// Operations of stablehlo whose pretty form is just operands and the type need no row here.
constexpr PrettyForm kForms[] = {
    special("module", Syntax::module_op),
    special("builtin.module", Syntax::module_op),
    special("func.func", Syntax::function),
    special("call", Syntax::call),
    special("func.call", Syntax::call),
    plain("return", {}, PrettyTypes::none),
    plain("func.return", {}, PrettyTypes::none),
    plain("stablehlo.return", {}, PrettyTypes::none),
    plain("sdy.return", {}, PrettyTypes::none),
    special("sdy.mesh", Syntax::mesh),
    special("sdy.sharding_constraint", Syntax::sharding),
    special("sdy.sharding_group", Syntax::sharding),
    special("sdy.manual_computation", Syntax::manual),
    special("stablehlo.constant", Syntax::constant),
    special("chlo.constant", Syntax::constant),
    special("arith.constant", Syntax::constant),
    special("stablehlo.compare", Syntax::compare),
    special("stablehlo.slice", Syntax::slice),
    special("stablehlo.get_tuple_element", Syntax::element),
    special("stablehlo.reduce_precision", Syntax::precision),
    special("stablehlo.custom_call", Syntax::custom_call),
    special("stablehlo.composite", Syntax::composite),
    {"stablehlo.dot_general",
     Syntax::dot,
     PrettyTypes::last,
     {{{"precision", "precision_config"}, {"algorithm", "algorithm"}}}},
    special("stablehlo.convolution", Syntax::convolution),
    special("stablehlo.reduce", Syntax::reduce),
    special("chlo.scan", Syntax::scan),
    special("stablehlo.while", Syntax::while_loop, PrettyTypes::all),
    plain("stablehlo.optimization_barrier", {}, PrettyTypes::all),
    plain("stablehlo.broadcast_in_dim", {{{"dims", "broadcast_dimensions"}}}),
    plain("stablehlo.broadcast", {{{"sizes", "broadcast_sizes"}}}),
    plain("stablehlo.dynamic_broadcast_in_dim",
          {{{"dims", "broadcast_dimensions"},
            {"expanding_dims", "known_expanding_dimensions"},
            {"nonexpanding_dims", "known_nonexpanding_dimensions"}}}),
    plain("stablehlo.transpose", {{{"dims", "permutation"}}}),
    plain("stablehlo.reverse", {{{"dims", "dimensions"}}}),
    plain("stablehlo.concatenate", {{{"dim", "dimension"}}}),
    plain("stablehlo.iota", {{{"dim", "iota_dimension"}}}),
    plain("stablehlo.dynamic_iota", {{{"dim", "iota_dimension"}}}),
    plain("stablehlo.get_dimension_size", {{{"dim", "dimension"}}}),
    plain("stablehlo.set_dimension_size", {{{"dim", "dimension"}}}),
    plain("stablehlo.dynamic_slice", {{{"sizes", "slice_sizes"}}}),
    plain("stablehlo.pad", {{{"low", "edge_padding_low"},
                             {"high", "edge_padding_high"},
                             {"interior", "interior_padding"}}}),
    plain("stablehlo.fft", {{{"type", "fft_type", true}, {"length", "fft_length"}}}),
    plain("stablehlo.rng", {{{"distribution", "rng_distribution", true}}}),
    plain("stablehlo.rng_bit_generator", {{{"algorithm", "rng_algorithm", true}}}),
    plain("stablehlo.cholesky", {{{"lower", "lower"}}}),
    plain("stablehlo.dot", {{{"precision", "precision_config"}}}),
    plain("stablehlo.einsum", {{{"config", "einsum_config"}}}),
    plain("stablehlo.unary_einsum", {{{"config", "einsum_config"}}}),
    plain("stablehlo.torch_index_select", {{{"dim", "dim"}, {"batch_dims", "batch_dims"}}}),
    plain("chlo.top_k", {{{"k", "k"}}}, PrettyTypes::all),
    plain("check.expect_eq", {}, PrettyTypes::none),
    plain("check.expect_eq_const", {}, PrettyTypes::none),
    plain("check.expect_almost_eq", {{{"tolerance", "tolerance"}}}, PrettyTypes::none),
    plain("check.expect_almost_eq_const", {{{"tolerance", "tolerance"}}}, PrettyTypes::none),
    plain("check.expect_close",
          {{{"max_ulp_difference", "max_ulp_difference"},
            {"min_ulp_difference", "min_ulp_difference"}}},
          PrettyTypes::none),
    plain("check.expect_serialized_eq", {{{"probe_id", "probe_id"}, {"iter", "iteration"}}},
          PrettyTypes::none),
    plain("interpreter.probe", {{{"probe_id", "probe_id"}}}),
    plain("interpreter.print", {}, PrettyTypes::none),
};

constexpr PrettyForm kAnyPlain = plain("");

}  // namespace

const PrettyForm* find_pretty_form(std::string_view name) {
  const auto* found = std::find_if(std::begin(kForms), std::end(kForms),
                                   [&](const PrettyForm& form) { return form.name == name; });
  if (found != std::end(kForms)) return found;
  if (name.starts_with("stablehlo.") || name.starts_with("chlo.")) return &kAnyPlain;
  return nullptr;
}

void MlirParser::pretty(MlirOp& op, size_t result_count, size_t position) {
  const PrettyForm* form = find_pretty_form(op.name);
  if (form == nullptr)
    lexer_.fail_at(position, "the pretty form of {} is not known; print it in the generic form",
                   quoted(op.name));
  switch (form->syntax) {
    case Syntax::plain:
      plain_form(op, *form);
      return pretty_types(op, *form, result_count);
    case Syntax::constant:
      return constant_form(op);
    case Syntax::compare:
      compare_form(op);
      return pretty_types(op, *form, result_count);
    case Syntax::slice:
      slice_form(op);
      return pretty_types(op, *form, result_count);
    case Syntax::element:
      element_form(op);
      return pretty_types(op, *form, result_count);
    case Syntax::precision:
      precision_form(op);
      return pretty_types(op, *form, result_count);
    case Syntax::call:
      op.name = "func.call";
      return call_form(op);
    case Syntax::custom_call:
      return custom_call_form(op);
    case Syntax::composite:
      return composite_form(op);
    case Syntax::dot:
      dot_form(op, *form);
      return pretty_types(op, *form, result_count);
    case Syntax::convolution:
      convolution_form(op);
      return pretty_types(op, *form, result_count);
    case Syntax::reduce:
      return reduce_form(op);
    case Syntax::while_loop:
      return while_form(op);
    case Syntax::scan:
      return scan_form(op);
    case Syntax::mesh:
      return mesh_form(op);
    case Syntax::sharding:
      sharding_form(op);
      return pretty_types(op, *form, result_count);
    case Syntax::manual:
      return manual_form(op);
    case Syntax::module_op:
      return module_op(op);
    case Syntax::function:
      return function(op);
  }
}

// %a, %b, dims = [0] {attributes}. top_k has parentheses around it; checks have constants among the
// operands.
void MlirParser::plain_form(MlirOp& op, const PrettyForm& form) {
  if (op.name == "return") op.name = "func.return";
  const bool bracket = take("(");
  bool more = is(MlirTokenKind::value) || is(MlirTokenKind::word);
  while (more) {
    if (is(MlirTokenKind::value)) {
      op.operands.push_back(operand());
    } else if (is("dense")) {
      op.attrs.emplace_back("value", attribute());
    } else {
      keyword(op, form);
    }
    more = take(",");
  }
  if (bracket) expect(")");
  optional_dictionary(op);
}

void MlirParser::keyword(MlirOp& op, const PrettyForm& form) {
  const size_t at = token().begin;
  const std::string_view word = expect(MlirTokenKind::word, "a value (`%name`) or a keyword");
  for (const PrettyKeyword& row : form.keywords) {
    if (row.keyword != word || word.empty()) continue;
    expect("=");
    if (row.word && is(MlirTokenKind::word)) {
      op.attrs.emplace_back(row.attr, words_to_attr(row.attr));
    } else if (row.keyword == "precision") {  // [HIGH, HIGH] or one word
      MlirAttr attr;
      attr.kind = MlirAttr::Kind::array;
      if (is("[")) {
        list("[", "]", [&] { attr.elements.push_back(words_to_attr("precision")); });
      } else {
        attr.elements.push_back(words_to_attr("precision"));
      }
      op.attrs.emplace_back(row.attr, std::move(attr));
    } else {
      op.attrs.emplace_back(row.attr, attribute(false));
    }
    return;
  }
  lexer_.fail_at(at, "{} has no {}", op.name, quoted(word));
}

// Makes a word the attribute #stablehlo<name WORD>.
MlirAttr MlirParser::words_to_attr(std::string_view dialect_name) {
  MlirAttr attr;
  attr.kind = MlirAttr::Kind::dialect;
  attr.text = std::string(dialect_name);
  MlirAttr& word = attr.elements.emplace_back();
  word.kind = MlirAttr::Kind::string;
  word.text = std::string(expect(MlirTokenKind::word, "a word"));
  return attr;
}

// : type, : type, type or : (types) -> types
void MlirParser::pretty_types(MlirOp& op, const PrettyForm& form, size_t result_count) {
  if (!is(":")) {
    // Returns and checks without operands, and checks of constants, have no types.
    if (form.types == PrettyTypes::none) return;
    lexer_.fail_wanted("`:` and types");
  }
  lexer_.next();
  std::vector<MlirType> types;
  if (is("(")) {
    types = type_list();
    if (!is("->")) lexer_.fail_wanted("`->`");
  } else {
    do types.push_back(type());
    while (take(","));
  }
  if (take("->")) {
    make_results(op, result_types());
  } else if (form.types == PrettyTypes::last) {
    // Operations with several results list the types of all of them.
    if (result_count <= 1 || result_count != types.size())
      types.erase(types.begin(), types.end() - 1);
    make_results(op, std::move(types));
  } else if (form.types == PrettyTypes::all) {
    make_results(op, std::move(types));
  }
  if (form.types == PrettyTypes::none) {
    op.results.clear();
    optional_dictionary(op);
  }
}

}  // namespace heddle::import
