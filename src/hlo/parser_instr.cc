// Instructions and their operands.
#include <algorithm>

#include "hlo/parser.h"
#include "hlo/shape_inference.h"

namespace heddle::hlo {
namespace {

// Far above the count of any opcode; duplicates are found by linear search.
constexpr size_t kMaxAttrs = 64;

bool is_async_end(Opcode opcode) {
  return opcode == Opcode::async_update || opcode == Opcode::async_done;
}

// Opcodes that `<opcode>-start` may wrap: all but structural ones.
bool can_be_wrapped(Opcode opcode) {
  return opcode != Opcode::parameter && opcode != Opcode::constant &&
         opcode != Opcode::async_start && !is_async_end(opcode);
}

}  // namespace

std::string Parser::Draft::what() const {
  return fmt::format("%{} ({})", name.empty() ? std::string_view("?") : name, opcode_text(opcode));
}

// [ROOT] [%]name = [shape] opcode(…), key=value, …
Status Parser::instruction(Scope& scope) {
  auto draft = std::make_unique<Draft>();  // not on the stack: computations nest through here
  bool is_root = false;
  if (lexer_.peek_ident() == "ROOT") {
    Lexer ahead = lexer_;
    ahead.ident();
    is_root = ahead.peek() != '=';
    if (is_root) lexer_ = ahead;
  }
  draft->offset = lexer_.offset();
  bool is_named = true;
  if (scope.makes_parameters) {
    Lexer ahead = lexer_;
    is_named = ahead.name("") && ahead.peek() == '=';
  }
  if (is_named) {
    HEDDLE_ASSIGN_OR_RETURN(draft->name, lexer_.name("an instruction or '}'"));
    HEDDLE_RETURN_IF_ERROR(lexer_.expect('=', "after the instruction's name"));
    if (scope.names.contains(draft->name))
      return lexer_.error_at(draft->offset, "%{} is defined twice in {}", draft->name,
                             scope.computation->name());
  }
  if (shape_is_next()) {
    HEDDLE_ASSIGN_OR_RETURN(draft->shape, shape());
  }
  HEDDLE_RETURN_IF_ERROR(call(scope, *draft));
  HEDDLE_RETURN_IF_ERROR(attr_list(scope, *draft));
  HEDDLE_ASSIGN_OR_RETURN(Instr* const instr, finish(scope, *draft));
  if (!draft->name.empty()) scope.names.emplace(draft->name, instr);
  if (is_root && scope.root)
    return lexer_.error_at(draft->offset, "a second ROOT in {}", scope.computation->name());
  if (is_root || scope.makes_parameters) scope.root = instr;
  return {};
}

// The opcode and the text between its parentheses.
Status Parser::call(Scope& scope, Draft& draft) {
  HEDDLE_ASSIGN_OR_RETURN(draft.opcode, opcode(draft));
  HEDDLE_RETURN_IF_ERROR(lexer_.expect('(', "before the operands"));
  if (draft.opcode == Opcode::parameter || draft.opcode == Opcode::constant) {
    HEDDLE_RETURN_IF_ERROR(special_operand(draft));
    return lexer_.expect(')', "after the value");
  }
  while (!lexer_.accept(')')) {
    HEDDLE_ASSIGN_OR_RETURN(Instr* const found, operand(scope));
    draft.operands.push_back(found);
    if (!lexer_.accept(',') && lexer_.peek() != ')')
      return lexer_.unexpected_here("',' or ')' after an operand");
  }
  return check_arity(draft);
}

Result<Opcode> Parser::opcode(Draft& draft) {
  const size_t at = lexer_.offset();
  const std::string_view word = lexer_.ident();
  if (word.empty()) return lexer_.unexpected_here("a shape or an opcode");
  if (const std::optional<Opcode> found = opcode_from_text(word)) return *found;
  static constexpr std::pair<std::string_view, Draft::Sugar> kEndings[] = {
      {"-start", Draft::Sugar::start},
      {"-update", Draft::Sugar::update},
      {"-done", Draft::Sugar::done}};
  for (const auto& [ending, sugar] : kEndings) {
    if (!word.ends_with(ending)) continue;
    const auto wrapped = opcode_from_text(word.substr(0, word.size() - ending.size()));
    if (!wrapped || !can_be_wrapped(*wrapped)) break;
    draft.sugar = sugar;
    return *wrapped;
  }
  return lexer_.error_at(at, "unknown opcode '{}'", word);
}

Status Parser::check_arity(const Draft& draft) {
  const OpcodeInfo& info = opcode_info(draft.opcode);
  const bool is_end = draft.sugar == Draft::Sugar::update || draft.sugar == Draft::Sugar::done;
  const int got = static_cast<int>(draft.operands.size());
  const int least = is_end ? 1 : info.least_operands, most = is_end ? 1 : info.most_operands;
  if (got >= least && (most < 0 || got <= most)) return {};
  const std::string wanted = most == least ? fmt::to_string(least)
                             : most < 0    ? fmt::format("at least {}", least)
                                           : fmt::format("{} to {}", least, most);
  return lexer_.error_at(draft.offset, "{} has {} operands, wanted {}", draft.what(), got, wanted);
}

// parameter(0), constant({1, 2})
Status Parser::special_operand(Draft& draft) {
  const size_t at = lexer_.offset();
  if (!draft.shape)
    return lexer_.error_at(draft.offset, "{} needs its shape written", draft.what());
  if (draft.opcode == Opcode::parameter) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t number, lexer_.integer("a parameter number"));
    if (number < 0) return lexer_.error_at(at, "parameter number {} is negative", number);
    draft.special = ParameterAttrs{number};
    return {};
  }
  HEDDLE_ASSIGN_OR_RETURN(Literal value, literal(*draft.shape));
  draft.special = ConstantAttrs{std::move(value), elided_};
  return {};
}

// [shape] name(#int)* or [shape] opcode(…)
Result<Instr*> Parser::operand(Scope& scope) {
  std::optional<Shape> declared;
  if (shape_is_next()) {
    HEDDLE_ASSIGN_OR_RETURN(declared, shape());
  }
  const size_t at = lexer_.offset();
  const bool has_mark = lexer_.peek() == '%';
  if (!has_mark) {
    Lexer ahead = lexer_;
    if (!ahead.ident().empty() && ahead.peek() == '(')
      return nested_instruction(scope, std::move(declared));
  }
  std::string_view name;
  if (has_mark || !scope.makes_parameters || !lexer_.peek_ident().empty()) {
    HEDDLE_ASSIGN_OR_RETURN(name, lexer_.name("an operand"));
  }
  auto found = scope.names.find(name);
  Instr* result = found == scope.names.end() || name.empty() ? nullptr : found->second;
  if (!result) {
    HEDDLE_ASSIGN_OR_RETURN(result,
                            missing_operand(scope, name, declared ? &*declared : nullptr, at));
  }
  while (lexer_.accept('#')) {
    const size_t index_at = lexer_.offset();
    HEDDLE_ASSIGN_OR_RETURN(const int64_t index, lexer_.integer("a tuple index"));
    HEDDLE_ASSIGN_OR_RETURN(result, element(scope, result, index, index_at));
  }
  if (declared && !declared->compatible(result->shape()))
    return lexer_.error_at(at, "operand %{} is {}, not {}", name,
                           tensor::to_string(result->shape(), false),
                           tensor::to_string(*declared, false));
  return result;
}

Result<Instr*> Parser::missing_operand(Scope& scope, std::string_view name, const Shape* shape,
                                       size_t at) {
  if (!scope.makes_parameters)
    return lexer_.error_at(at, "%{} is not defined before its use in {}", name,
                           scope.computation->name());
  if (!shape) return lexer_.error_at(at, "operand %{} needs its shape written", name);
  const auto number = static_cast<int64_t>(scope.computation->parameters().size());
  Instr* parameter =
      scope.computation->add(Opcode::parameter, *shape, {}, ParameterAttrs{number}, {}, name);
  if (!name.empty()) scope.names.emplace(name, parameter);
  return parameter;
}

// An instruction without name and attributes, written in place of an operand.
Result<Instr*> Parser::nested_instruction(Scope& scope, std::optional<Shape> shape) {
  Nesting nesting(*this, 2);
  HEDDLE_RETURN_IF_ERROR(nesting.check());
  auto draft = std::make_unique<Draft>();
  draft->offset = lexer_.offset();
  draft->shape = std::move(shape);
  HEDDLE_RETURN_IF_ERROR(call(scope, *draft));
  return finish(scope, *draft);
}

// The get-tuple-element that `%t#0` denotes; shared by all its uses.
Result<Instr*> Parser::element(Scope& scope, Instr* tuple, int64_t index, size_t at) {
  const Shape& shape = tuple->shape();
  if (!shape.is_tuple() || index < 0 || index >= static_cast<int64_t>(shape.elements().size()))
    return lexer_.error_at(at, "%{} is {}, which has no element {}", tuple->name(),
                           tensor::to_string(shape, false), index);
  auto [found, is_new] = scope.elements.try_emplace({tuple, index}, nullptr);
  if (is_new) {
    HEDDLE_RETURN_IF_ERROR(count_inferred(shape.elements()[index], at));
    found->second = scope.computation->add(Opcode::get_tuple_element, shape.elements()[index],
                                           {tuple}, TupleIndexAttrs{index}, {},
                                           fmt::format("{}.gte{}", tuple->name(), index));
  }
  return found->second;
}

// {a, b}
Status Parser::predecessors(const Scope& scope, AttrList& list) {
  HEDDLE_RETURN_IF_ERROR(lexer_.expect('{', "before the predecessors"));
  while (!lexer_.accept('}')) {
    const size_t at = lexer_.offset();
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view name, lexer_.name("an instruction"));
    auto found = scope.names.find(name);
    if (found == scope.names.end())
      return lexer_.error_at(at, "%{} is not defined before it is a predecessor", name);
    list.control_predecessors.push_back(found->second);
    if (!lexer_.accept(',') && lexer_.peek() != '}')
      return lexer_.unexpected_here("',' or '}' after a predecessor");
  }
  return {};
}

// A computation, or for some keys a list of them.
Status Parser::callees(const Draft& draft, AttrEntry& entry) {
  const std::string_view owner = draft.name.empty() ? std::string_view("inline") : draft.name;
  if (entry.key != "branch_computations" && entry.key != "called_computations") {
    HEDDLE_ASSIGN_OR_RETURN(Computation* const called, callee(owner, entry.key));
    entry.called.push_back(called);
    return {};
  }
  HEDDLE_RETURN_IF_ERROR(lexer_.expect('{', "before the computations"));
  while (!lexer_.accept('}')) {
    HEDDLE_ASSIGN_OR_RETURN(Computation* const called, callee(owner, entry.key));
    entry.called.push_back(called);
    if (!lexer_.accept(',') && lexer_.peek() != '}')
      return lexer_.unexpected_here("',' or '}' after a computation");
  }
  return {};
}

// The value of one attribute: parsed, kept as an annotation or a fact, or as text for the reader.
Status Parser::attr_value(const Scope& scope, Draft& draft, AttrEntry& entry) {
  if (entry.key == "control-predecessors") {
    entry.used = true;
    return predecessors(scope, draft.attrs);
  }
  if (is_callee_key(entry.key)) return callees(draft, entry);
  const bool json = entry.key == "backend_config";
  HEDDLE_ASSIGN_OR_RETURN(entry.raw, lexer_.value(json));
  if (is_annotation_key(entry.key)) {
    draft.attrs.annotations.emplace_back(entry.key, fold_raw(entry.raw, json));
    entry.used = true;
  } else if (is_fact_key(entry.key)) {
    if (Status read = read_fact(entry.key, entry.raw, &draft.attrs.facts); !read)
      return lexer_.error_at(entry.offset, "{}: {}", draft.what(), read.error().message);
    entry.used = true;
  } else if (entry.key == "literal") {  // literal=s32[] 1: a shape and a value
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view value, lexer_.value(false));
    entry.raw = lexer_.slice(lexer_.offset_of(entry.raw), lexer_.offset_of(value) + value.size());
  }
  return {};
}

Status Parser::attr_list(const Scope& scope, Draft& draft) {
  std::vector<AttrEntry>& entries = draft.attrs.entries;
  while (lexer_.accept(',')) {
    AttrEntry entry;
    entry.offset = lexer_.offset();
    entry.key = lexer_.ident();
    if (entry.key.empty()) return lexer_.unexpected_here("an attribute");
    HEDDLE_RETURN_IF_ERROR(lexer_.expect('=', "after the attribute"));
    if (entries.size() >= kMaxAttrs)
      return lexer_.error_at(entry.offset, "{} has more than {} attributes", draft.what(),
                             kMaxAttrs);
    auto is_same = [&](const AttrEntry& other) { return other.key == entry.key; };
    if (std::any_of(entries.begin(), entries.end(), is_same))
      return lexer_.error_at(entry.offset, "attribute '{}' of {} is given twice", entry.key,
                             draft.what());
    HEDDLE_RETURN_IF_ERROR(attr_value(scope, draft, entry));
    entries.push_back(std::move(entry));
  }
  return {};
}

// Turns the draft into an instruction: reads attributes, infers the shape if none is written.
Result<Instr*> Parser::finish(Scope& scope, Draft& draft) {
  if (draft.sugar != Draft::Sugar::none) return finish_async(scope, draft);
  AttrReader reader(lexer_, draft.attrs, draft.what(), draft.offset);
  Attrs attrs = std::move(draft.special);
  if (attrs.index() == 0) {
    HEDDLE_ASSIGN_OR_RETURN(attrs, read_attrs(draft.opcode, reader, draft.operands));
  }
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Computation*> called, read_called(draft.opcode, reader));
  HEDDLE_RETURN_IF_ERROR(reader.check_all_used());
  if (is_async_end(draft.opcode) && called.empty()) {
    called = draft.operands[0]->called();
    if (called.size() > 1) called.resize(1);
  }
  if (!draft.shape) {
    if (shape_is_declared(draft.opcode))
      return lexer_.error_at(draft.offset, "{} needs its shape written", draft.what());
    std::vector<const Shape*> shapes;
    for (const Instr* operand : draft.operands) shapes.push_back(&operand->shape());
    if (draft.opcode == Opcode::tuple)  // before memory is allocated
      HEDDLE_RETURN_IF_ERROR(count_inferred(shapes, draft.offset));
    Result<Shape> inferred = infer_shape(draft.opcode, shapes, attrs, called);
    if (!inferred)
      return lexer_.error_at(draft.offset, "{}: {}", draft.what(), inferred.error().message);
    if (draft.opcode != Opcode::tuple)
      HEDDLE_RETURN_IF_ERROR(count_inferred(*inferred, draft.offset));
    draft.shape = std::move(*inferred);
  }
  return append(scope, draft, draft.opcode, std::move(attrs), std::move(called));
}

Instr* Parser::append(Scope& scope, Draft& draft, Opcode opcode, Attrs attrs,
                      std::vector<Computation*> called) {
  Instr* instr = scope.computation->add(opcode, std::move(*draft.shape), std::move(draft.operands),
                                        std::move(attrs), std::move(called), draft.name);
  for (Instr* before : draft.attrs.control_predecessors)
    scope.computation->add_control_edge(before, instr);
  instr->annotations() = std::move(draft.attrs.annotations);
  instr->facts() = draft.attrs.facts;
  for (auto& [key, value] : instr->annotations())
    if (key == "metadata") instr->add_nodes(take_op_name(&value));
  return instr;
}

// `<op>-start(…), <attributes of op>` becomes async-start of a computation that holds op; its
// update and done take the computation from their operand, and attributes of op repeated there are
// dropped.
Result<Instr*> Parser::finish_async(Scope& scope, Draft& draft) {
  AttrReader reader(lexer_, draft.attrs, draft.what(), draft.offset);
  if (!draft.shape)
    return lexer_.error_at(draft.offset, "{} needs its shape written", draft.what());
  AsyncAttrs async;
  reader.quoted("async_execution_thread", async.async_execution_thread);
  std::vector<Computation*> called;
  if (draft.sugar == Draft::Sugar::start) {
    if (!draft.shape->is_tuple() || draft.shape->elements().size() < 2)
      return lexer_.error_at(draft.offset, "{}-start is {}, wanted ((operands), result, …)",
                             draft.what(), tensor::to_string(*draft.shape, false));
    HEDDLE_ASSIGN_OR_RETURN(Attrs attrs, read_attrs(draft.opcode, reader, draft.operands));
    HEDDLE_ASSIGN_OR_RETURN(std::vector<Computation*> inner, read_called(draft.opcode, reader));
    Computation* wrapper = module_->add_computation(
        fmt::format("{}.wrapped", draft.name.empty() ? opcode_text(draft.opcode) : draft.name));
    wrapper->execution_thread = async.async_execution_thread;
    std::vector<Instr*> parameters;
    for (size_t i = 0; i < draft.operands.size(); ++i) {
      HEDDLE_RETURN_IF_ERROR(count_inferred(draft.operands[i]->shape(), draft.offset));
      parameters.push_back(wrapper->add(Opcode::parameter, draft.operands[i]->shape(), {},
                                        ParameterAttrs{static_cast<int64_t>(i)}, {},
                                        fmt::format("param_{}", i)));
    }
    wrapper->set_root(wrapper->add(draft.opcode, draft.shape->elements()[1], std::move(parameters),
                                   std::move(attrs), std::move(inner)));
    called.push_back(wrapper);
  } else {
    const std::vector<Computation*>& started = draft.operands[0]->called();
    if (started.size() != 1)
      return lexer_.error_at(draft.offset, "{}: its operand %{} is not an async-start",
                             draft.what(), draft.operands[0]->name());
    for (AttrEntry& entry : draft.attrs.entries) entry.used = true;
    called = started;
  }
  HEDDLE_RETURN_IF_ERROR(reader.check_all_used());
  const Opcode opcode = draft.sugar == Draft::Sugar::start    ? Opcode::async_start
                        : draft.sugar == Draft::Sugar::update ? Opcode::async_update
                                                              : Opcode::async_done;
  return append(scope, draft, opcode, std::move(async), std::move(called));
}

}  // namespace heddle::hlo
