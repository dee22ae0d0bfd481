// Modules, computations and instructions as text, in XLA's short style with `%`.
#include <fmt/ranges.h>

#include <algorithm>

#include "hlo/attr_reader.h"
#include "hlo/lexer.h"
#include "hlo/names.h"
#include "hlo/state_arrays.h"
#include "hlo/text.h"

namespace heddle::hlo {
namespace {

// Header attributes kept as text that still affect the meaning.
bool has_meaning(std::string_view key) {
  return key == "buffer_donor" || key == "alias_passthrough_params";
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}
  std::string take() { return std::move(out_); }

  void module(const Module& module) {
    number_computations(module);
    out_ += "HloModule ";
    out_ += options_.ids_instead_of_names ? "module" : legal_name(module.name());
    header(module);
    out_ += '\n';
    if (options_.annotations) source_tables(module);
    for (const Computation* each : module.post_order()) {
      out_ += '\n';
      computation(*each);
      out_ += '\n';
    }
  }

  void number_computations(const Module& module) {
    if (!options_.ids_instead_of_names) return;
    for (const Computation* each : module.post_order())
      computation_numbers_.emplace(each, computation_numbers_.size());
  }

  void computation(const Computation& computation) {
    number_instrs(computation);
    const Module* module = computation.module();
    if (module && module->entry() == &computation) out_ += "ENTRY ";
    name(computation);
    out_ += " {\n";
    for (const Instr* each : computation.instrs()) {
      out_ += each == computation.root() ? "  ROOT " : "  ";
      instr(*each);
      out_ += '\n';
    }
    out_ += '}';
    if (!computation.execution_thread.empty())
      out_ += ", execution_thread=" + quote(computation.execution_thread);
  }

  void number_instrs(const Computation& computation) {
    if (!options_.ids_instead_of_names) return;
    instr_numbers_.clear();
    for (const Instr* each : computation.instrs())
      instr_numbers_.emplace(each, instr_numbers_.size());
  }

  void instr(const Instr& instr) {
    name(instr);
    out_ += " = ";
    out_ += tensor::to_string(instr.shape());
    out_ += ' ';
    out_ += opcode_text(instr.opcode());
    out_ += '(';
    operands(instr);
    out_ += ')';
    if (const std::string attrs = attrs_to_string(instr); !attrs.empty()) {
      out_ += ", ";
      out_ += attrs;
    }
    called(instr);
    if (!instr.control_predecessors().empty()) {
      out_ += ", control-predecessors={";
      names(instr.control_predecessors());
      out_ += '}';
    }
    if (!options_.annotations) return;
    annotations(instr);
  }

 private:
  void annotations(const Instr& instr) {
    const auto is_metadata = [](const auto& item) { return item.first == "metadata"; };
    const Annotations& list = instr.annotations();
    const auto named = [&](std::string_view text) {
      return with_op_name(text, instr.nodes(), options_.max_nodes);
    };
    if (!instr.nodes().empty() && options_.max_nodes > 0 &&
        std::none_of(list.begin(), list.end(), is_metadata))
      attr("metadata", named("{}"));
    for (const auto& item : list)
      attr(item.first, is_metadata(item) ? named(item.second) : item.second);
    out_ += facts_text(instr.facts());
  }

  void attr(std::string_view key, std::string_view value) {
    out_ += ", ";
    out_ += key;
    out_ += '=';
    out_ += value;
  }

  void name(const Instr& instr) {
    out_ += '%';
    if (options_.ids_instead_of_names) {
      out_ += 'v';
      out_ += fmt::to_string(instr_numbers_[&instr]);
    } else {
      out_ += instr.name();
    }
  }

  void name(const Computation& computation) {
    out_ += '%';
    if (options_.ids_instead_of_names) {
      out_ += 'c';
      out_ += fmt::to_string(computation_numbers_[&computation]);
    } else {
      out_ += computation.name();
    }
  }

  template <typename T>
  void names(const std::vector<T*>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out_ += ", ";
      name(*list[i]);
    }
  }

  void operands(const Instr& instr) {
    if (instr.is(Opcode::parameter)) {
      out_ += fmt::to_string(instr.parameter_number());
    } else if (instr.is(Opcode::constant)) {
      const auto& constant = instr.attrs_as<ConstantAttrs>();
      out_ += constant.elided ? "{...}"
                              : tensor::to_string(constant.value, options_.max_constant_elems);
    } else {
      names(instr.operands());
    }
  }

  void called(const Instr& instr) {
    const std::vector<Computation*>& list = instr.called();
    if (list.empty()) return;
    auto one = [&](std::string_view key, size_t i) {
      if (i >= list.size()) return;
      out_ += ", ";
      out_ += key;
      out_ += '=';
      name(*list[i]);
    };
    switch (instr.opcode()) {
      case Opcode::while_:
        one("condition", 0);
        return one("body", 1);
      case Opcode::select_and_scatter:
        one("select", 0);
        return one("scatter", 1);
      case Opcode::fusion:
      case Opcode::async_start:
      case Opcode::async_update:
      case Opcode::async_done:
        return one("calls", 0);
      case Opcode::conditional:
        if (list.size() == 2 && !instr.operands().empty() &&
            instr.operand(0)->shape().type() == Type::pred) {
          one("true_computation", 0);
          return one("false_computation", 1);
        }
        out_ += ", branch_computations={";
        break;
      case Opcode::custom_call:
        out_ += ", called_computations={";
        break;
      default:
        return one("to_apply", 0);
    }
    names(list);
    out_ += '}';
  }

  void header(const Module& module) {
    if (module.is_scheduled) attr("is_scheduled", "true");
    if (!module.input_output_alias.empty()) {
      std::vector<std::string> rows;
      for (const Alias& alias : module.input_output_alias)
        rows.push_back(fmt::format("{{{}}}: ({}, {{{}}}, {})", fmt::join(alias.output_index, ","),
                                   alias.parameter, fmt::join(alias.parameter_index, ","),
                                   alias.must ? "must-alias" : "may-alias"));
      attr("input_output_alias", fmt::format("{{ {} }}", fmt::join(rows, ", ")));
    }
    if (module.entry_layout) {
      std::vector<std::string> parameters;
      for (const Shape& shape : module.entry_layout->first)
        parameters.push_back(tensor::to_string(shape));
      attr("entry_computation_layout", fmt::format("{{({})->{}}}", fmt::join(parameters, ", "),
                                                   tensor::to_string(module.entry_layout->second)));
    }
    if (module.replica_count != 1) attr("replica_count", fmt::to_string(module.replica_count));
    if (module.num_partitions != 1) attr("num_partitions", fmt::to_string(module.num_partitions));
    if (!module.states.empty()) attr("heddle_states", states_text(module.states));
    if (!module.symbols.empty()) attr("heddle_symbols", symbols_text(module.symbols));
    for (const auto& [key, value] : module.header)
      if (!is_source_table(key) && (options_.annotations || has_meaning(key))) attr(key, value);
  }

  void source_tables(const Module& module) {
    for (const auto& [key, value] : module.header)
      if (is_source_table(key)) out_ += fmt::format("\n{}\n{}\n", key, value);
  }

  const PrintOptions& options_;
  std::string out_;
  std::unordered_map<const Computation*, size_t> computation_numbers_;
  std::unordered_map<const Instr*, size_t> instr_numbers_;
};

}  // namespace

std::string to_string(const Module& module, const PrintOptions& options) {
  Printer printer(options);
  printer.module(module);
  return printer.take();
}

std::string to_string(const Computation& computation, const PrintOptions& options) {
  Printer printer(options);
  if (computation.module()) printer.number_computations(*computation.module());
  printer.computation(computation);
  return printer.take() + '\n';
}

std::string to_string(const Instr& instr, const PrintOptions& options) {
  Printer printer(options);
  if (instr.parent()) {
    printer.number_instrs(*instr.parent());
    if (instr.parent()->module()) printer.number_computations(*instr.parent()->module());
  }
  printer.instr(instr);
  return printer.take();
}

}  // namespace heddle::hlo
