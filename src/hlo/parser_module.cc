// Modules, headers, source tables and computations.
#include "hlo/names.h"
#include "hlo/parser.h"
#include "hlo/state_arrays.h"

namespace heddle::hlo {
namespace {

// Header attributes that are kept as text.
bool is_kept_header_key(std::string_view key) {
  static constexpr std::string_view kKeys[] = {"buffer_donor",
                                               "alias_passthrough_params",
                                               "allow_spmd_sharding_propagation_to_parameters",
                                               "allow_spmd_sharding_propagation_to_output",
                                               "frontend_attributes",
                                               "origin_recovery_table",
                                               "debug_attributes"};
  for (std::string_view kept : kKeys)
    if (key == kept) return true;
  return false;
}

}  // namespace

Status Parser::expect_end(std::string_view what) {
  if (lexer_.at_end()) return {};
  if (lexer_.peek_ident() == "HloModule")
    return lexer_.error_at(lexer_.offset(), "got a second HloModule, wanted one module");
  return lexer_.unexpected_here(fmt::format("the end of the {}", what));
}

Result<std::unique_ptr<Module>> Parser::module() {
  computations_.clear();
  last_name_ = {};
  auto module = std::make_unique<Module>("");
  module_ = module.get();
  const bool has_header = lexer_.accept_word("HloModule");
  if (has_header) {
    HEDDLE_RETURN_IF_ERROR(header(*module));
    HEDDLE_RETURN_IF_ERROR(source_tables(*module));
  } else if (is_single_instruction()) {
    HEDDLE_RETURN_IF_ERROR(single_instruction(*module));
    return module;
  }
  while (!lexer_.at_end() && lexer_.peek_ident() != "HloModule")
    HEDDLE_RETURN_IF_ERROR(computation(*module));
  if (module->computations().empty()) return lexer_.unexpected_here("a computation");
  if (!module->entry()) module->set_entry(computations_.at(last_name_));
  if (!has_header) module->set_name(module->entry()->name());
  HEDDLE_RETURN_IF_ERROR(check_entry_layout(*module));
  return module;
}

Status Parser::header(Module& module) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view name, lexer_.name("the name of the module"));
  module.set_name(legal_name(name));
  std::vector<std::string_view> seen;
  while (lexer_.accept(',')) {
    const size_t at = lexer_.offset();
    const std::string_view key = lexer_.ident();
    if (key.empty()) return lexer_.unexpected_here("an attribute of the module");
    for (std::string_view other : seen)
      if (other == key) return lexer_.error_at(at, "attribute '{}' is given twice", key);
    seen.push_back(key);
    HEDDLE_RETURN_IF_ERROR(lexer_.expect('=', "after the attribute"));
    HEDDLE_RETURN_IF_ERROR(header_attr(module, key, at));
  }
  return {};
}

Status Parser::header_attr(Module& module, std::string_view key, size_t at) {
  if (key == "input_output_alias") return aliases(module);
  if (key == "entry_computation_layout") return entry_layout(module);
  if (key == "is_scheduled") {
    module.is_scheduled = lexer_.accept_word("true");
    if (!module.is_scheduled && !lexer_.accept_word("false"))
      return lexer_.unexpected_here("true or false");
    return {};
  }
  if (key == "replica_count" || key == "num_partitions") {
    const size_t value_at = lexer_.offset();
    HEDDLE_ASSIGN_OR_RETURN(const int64_t count, lexer_.integer(key));
    if (count < 1) return lexer_.error_at(value_at, "{} is {}, wanted at least 1", key, count);
    (key == "replica_count" ? module.replica_count : module.num_partitions) = count;
    return {};
  }
  if (key == "heddle_states") {
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view raw, lexer_.value(false));
    auto states = read_states(fold_raw(raw, false));
    if (!states) return lexer_.error_at(at, "{}", states.error().message);
    module.states = std::move(*states);
    return {};
  }
  if (key == "heddle_symbols") {
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view raw, lexer_.value(false));
    Result<std::vector<Symbol>> symbols = read_symbols(fold_raw(raw, false));
    if (!symbols) return lexer_.error_at(at, "{}", symbols.error().message);
    module.symbols = std::move(*symbols);
    return {};
  }
  if (!is_kept_header_key(key))
    return lexer_.error_at(at, "unknown attribute '{}' of the module", key);
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view raw, lexer_.value(false));
  module.header.emplace_back(key, fold_raw(raw, false));
  return {};
}

// { {0}: (1, {}, must-alias), {1}: 2 }
Status Parser::aliases(Module& module) {
  HEDDLE_RETURN_IF_ERROR(lexer_.expect('{', "before the aliases"));
  while (!lexer_.accept('}')) {
    Alias alias;
    HEDDLE_ASSIGN_OR_RETURN(alias.output_index, read_index(lexer_));
    HEDDLE_RETURN_IF_ERROR(lexer_.expect(':', "after the output index"));
    const bool is_long = lexer_.accept('(');
    HEDDLE_ASSIGN_OR_RETURN(alias.parameter, lexer_.integer("a parameter number"));
    if (is_long) {
      if (lexer_.accept(',') && lexer_.peek() == '{') {
        HEDDLE_ASSIGN_OR_RETURN(alias.parameter_index, read_index(lexer_));
        lexer_.accept(',');
      }
      alias.must = lexer_.accept_word("must-alias");
      if (!alias.must) lexer_.accept_word("may-alias");
      HEDDLE_RETURN_IF_ERROR(lexer_.expect(')', "after the alias"));
    }
    module.input_output_alias.push_back(std::move(alias));
    if (!lexer_.accept(',') && lexer_.peek() != '}')
      return lexer_.unexpected_here("',' or '}' after an alias");
  }
  return {};
}

// {(shape, …)->shape}
Status Parser::entry_layout(Module& module) {
  HEDDLE_RETURN_IF_ERROR(lexer_.expect('{', "before the layouts"));
  HEDDLE_RETURN_IF_ERROR(lexer_.expect('(', "before the parameters' layouts"));
  std::vector<Shape> parameters;
  while (!lexer_.accept(')')) {
    HEDDLE_ASSIGN_OR_RETURN(Shape parameter, shape());
    parameters.push_back(std::move(parameter));
    if (!lexer_.accept(',') && lexer_.peek() != ')')
      return lexer_.unexpected_here("',' or ')' after a shape");
  }
  HEDDLE_RETURN_IF_ERROR(lexer_.expect("->", "before the result's layout"));
  HEDDLE_ASSIGN_OR_RETURN(Shape result, shape());
  HEDDLE_RETURN_IF_ERROR(lexer_.expect('}', "after the layouts"));
  module.entry_layout.emplace(std::move(parameters), std::move(result));
  return {};
}

Status Parser::check_entry_layout(const Module& module) {
  if (!module.entry_layout) return {};
  const auto& [shapes, result] = *module.entry_layout;
  const std::vector<Instr*>& parameters = module.entry()->parameters();
  const size_t at = lexer_.offset();
  if (shapes.size() != parameters.size())
    return lexer_.error_at(at, "entry_computation_layout has {} parameters, {} has {}",
                           shapes.size(), module.entry()->name(), parameters.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].compatible(parameters[i]->shape())) continue;
    return lexer_.error_at(at, "entry_computation_layout says {} for parameter {}, which is {}",
                           tensor::to_string(shapes[i]), i,
                           tensor::to_string(parameters[i]->shape()));
  }
  const Shape& root = module.entry()->root()->shape();
  if (result.compatible(root)) return {};
  return lexer_.error_at(at, "entry_computation_layout says {} for the result, which is {}",
                         tensor::to_string(result), tensor::to_string(root));
}

// Kept in the header's annotations, one row a line; metadata points into them by number.
Status Parser::source_tables(Module& module) {
  while (is_source_table(lexer_.peek_ident())) {
    const std::string_view table = lexer_.ident();
    std::string rows;
    while (lexer_.peek() >= '0' && lexer_.peek() <= '9') {
      HEDDLE_ASSIGN_OR_RETURN(const int64_t number, lexer_.integer("a row number"));
      HEDDLE_ASSIGN_OR_RETURN(const std::string_view row, lexer_.value(false));
      if (!rows.empty()) rows += '\n';
      rows += fmt::format("{} {}", number, fold_raw(row, false));
    }
    module.header.emplace_back(table, std::move(rows));
  }
  return {};
}

// The text of a module starts with ENTRY or `name {` or `name (p: …`; else it is one instruction.
bool Parser::is_single_instruction() {
  Lexer ahead = lexer_;
  const bool has_mark = ahead.accept('%');
  const std::string_view name = ahead.ident();
  if (name.empty()) return ahead.peek() == '(';
  if (!has_mark && name == "ENTRY") return false;
  if (ahead.peek() == '{') return false;
  if (ahead.peek() != '(') return !ahead.at_end();
  ahead.accept('(');
  if (ahead.accept(')')) return !ahead.accept("->");
  ahead.name("");
  return !ahead.accept(':');
}

Status Parser::single_instruction(Module& module) {
  Scope scope;
  scope.makes_parameters = true;
  scope.computation = module.add_computation("entry");
  const size_t at = lexer_.offset();
  HEDDLE_RETURN_IF_ERROR(instruction(scope));
  HEDDLE_RETURN_IF_ERROR(check_parameters(*scope.computation, at));
  scope.computation->set_root(scope.root);
  module.set_entry(scope.computation);
  module.set_name(scope.root->name());
  return {};
}

// [ENTRY] name [(p: shape, …) -> shape] { … } [, execution_thread="x"]
Status Parser::computation(Module& module) {
  const bool is_entry = lexer_.peek_ident() == "ENTRY";
  const size_t at = lexer_.offset();
  if (is_entry) lexer_.ident();
  if (is_entry && module.entry()) return lexer_.error_at(at, "a second ENTRY");
  const size_t name_at = lexer_.offset();
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view name, lexer_.name("a computation"));
  if (computations_.contains(name))
    return lexer_.error_at(name_at, "computation {} is defined twice", name);
  std::optional<Shape> result;
  if (lexer_.peek() == '(') HEDDLE_RETURN_IF_ERROR(signature(result));
  HEDDLE_ASSIGN_OR_RETURN(Computation* const done, body(module.add_computation(name)));
  if (result && !result->compatible(done->root()->shape()))
    return lexer_.error_at(name_at, "the signature of {} says {}, its root is {}", name,
                           tensor::to_string(*result, false),
                           tensor::to_string(done->root()->shape(), false));
  if (lexer_.accept(',')) {
    if (!lexer_.accept_word("execution_thread")) return lexer_.unexpected_here("execution_thread");
    HEDDLE_RETURN_IF_ERROR(lexer_.expect('=', "after execution_thread"));
    HEDDLE_ASSIGN_OR_RETURN(done->execution_thread, lexer_.quoted("a string"));
  }
  // Registered only after parsing, so that a computation cannot call itself.
  computations_.emplace(name, done);
  last_name_ = name;
  if (is_entry) module.set_entry(done);
  return {};
}

// Only the result's shape is used: there are files whose parameter shapes disagree with the body.
Status Parser::signature(std::optional<Shape>& result) {
  HEDDLE_RETURN_IF_ERROR(lexer_.expect('(', "before the parameters"));
  while (!lexer_.accept(')')) {
    HEDDLE_RETURN_IF_ERROR(lexer_.name("a parameter or ')'"));
    HEDDLE_RETURN_IF_ERROR(lexer_.expect(':', "after the parameter's name"));
    HEDDLE_RETURN_IF_ERROR(shape());
    if (!lexer_.accept(',') && lexer_.peek() != ')')
      return lexer_.unexpected_here("',' or ')' after a parameter");
  }
  HEDDLE_RETURN_IF_ERROR(lexer_.expect("->", "before the result's shape"));
  HEDDLE_ASSIGN_OR_RETURN(result, shape());
  return {};
}

// Checks that the numbers are 0 to n-1, in any order.
Status Parser::check_parameters(const Computation& computation, size_t at) {
  const std::vector<Instr*>& parameters = computation.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int64_t number = parameters[i]->parameter_number();
    if (number == static_cast<int64_t>(i)) continue;
    if (number < static_cast<int64_t>(i))
      return lexer_.error_at(at, "parameter {} of {} is defined twice", number, computation.name());
    return lexer_.error_at(at, "{} has a parameter {} but no parameter {}", computation.name(),
                           number, i);
  }
  return {};
}

Result<Computation*> Parser::body(Computation* computation) {
  Nesting nesting(*this, kComputationDepth);
  HEDDLE_RETURN_IF_ERROR(nesting.check());
  const size_t at = lexer_.offset();
  HEDDLE_RETURN_IF_ERROR(lexer_.expect('{', "before the instructions"));
  Scope scope;
  scope.computation = computation;
  while (!lexer_.accept('}')) {
    if (lexer_.at_end()) return lexer_.error_at(at, "'{{' is not closed");
    HEDDLE_RETURN_IF_ERROR(instruction(scope));
  }
  const std::vector<Instr*>& instrs = computation->instrs();
  if (instrs.empty())
    return lexer_.error_at(at, "computation {} has no instruction", computation->name());
  computation->set_root(scope.root ? scope.root : instrs.back());
  HEDDLE_RETURN_IF_ERROR(check_parameters(*computation, at));
  return computation;
}

// The computation that an attribute names or holds.
Result<Computation*> Parser::callee(std::string_view owner, std::string_view key) {
  if (lexer_.peek() == '{') return body(module_->add_computation(fmt::format("{}.{}", owner, key)));
  const size_t at = lexer_.offset();
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view name, lexer_.name("a computation"));
  auto found = computations_.find(name);
  if (found != computations_.end()) return found->second;
  return lexer_.error_at(at, "computation {} is not defined before its use in {}", name, key);
}

}  // namespace heddle::hlo
