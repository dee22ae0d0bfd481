#include "export/hlo_proto.h"

#include <cstring>
#include <unordered_map>

#include "export/proto_writer.h"
#include "hlo/names.h"
#include "import/hlo_proto_attrs.h"
#include "import/hlo_proto_header.h"
#include "import/hlo_proto_types.h"
#include "tensor/pack.h"

namespace heddle::exports {
namespace {

using hlo::Computation;
using hlo::Instr;
using hlo::Module;
using hlo::Opcode;
using import::ProtoCoding;
using import::ProtoType;
using import::ShapeMessage;
using tensor::Literal;
using tensor::Shape;

// Always with a layout, as in XLA: the default one if there is none.
void put_shape(ProtoWriter& out, int field, const Shape& shape) {
  std::vector<std::string> lost;
  ShapeMessage message = import::from_shape(shape, &lost);
  import::add_layouts(message);
  for (const std::string& what : lost) out.lose(what);
  out.put_message(field, [&](ProtoWriter& m) { import::shape_fields(m, message); });
}

// Elements in the order of `layout`, which is written with them.
void put_literal(ProtoWriter& out, const Literal& literal, const tensor::Shape& laid_out) {
  const ProtoType& row = *import::proto_type(literal.type());
  if (row.coding == ProtoCoding::none) {
    put_shape(out, 1, laid_out);
    for (size_t i = 0; i < literal.elements().size(); ++i)
      out.put_message(row.literal_field, [&](ProtoWriter& m) {
        put_literal(m, literal.elements()[i], laid_out.elements()[i]);
      });
    return;
  }
  tensor::Layout order;  // without tiles, which a literal cannot have
  order.minor_to_major = laid_out.layout_or_default().minor_to_major;
  Shape said = literal.shape().without_layout();
  said.set_layout(order);
  put_shape(out, 1, said);
  if (literal.elems() == 0) return;
  const Literal memory =
      order.is_row_major() ? literal : import::value_or_throw(tensor::pack(literal, order));
  if (row.coding == ProtoCoding::varint) {
    std::vector<int64_t> numbers(static_cast<size_t>(memory.elems()));
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = memory.get_s64(static_cast<int64_t>(i));
    out.put_packed(row.literal_field, numbers);
    return;
  }
  std::string bytes(static_cast<const char*>(memory.data()), static_cast<size_t>(memory.bytes()));
  const int bits = tensor::type_bits(row.type);
  for (char& c : bytes)
    if (bits < 8) c = static_cast<char>(static_cast<unsigned char>(c) & ((1U << bits) - 1));
  out.put_bytes(row.literal_field, bytes);
}

class ModuleWriter {
 public:
  explicit ModuleWriter(const Module& module) : module_(module), order_(module.post_order()) {
    // Names are unique in an XLA module; those of the entry stay unchanged.
    std::unordered_map<std::string, const Instr*> taken;
    std::unordered_map<std::string, int64_t> next_suffix;
    for (size_t c = order_.size(); c-- > 0;)
      for (const Instr* instr : order_[c]->instrs()) {
        std::string name = hlo::unique_name(taken, next_suffix, instr->name());
        taken.emplace(name, instr);
        names_.emplace(instr, std::move(name));
      }
    for (size_t c = 0; c < order_.size(); ++c) {
      computation_ids_[order_[c]] = static_cast<int64_t>(c);
      int64_t place = 0;
      for (const Instr* instr : order_[c]->instrs())
        instr_ids_[instr] = (static_cast<int64_t>(c) << 32) + place++;
      for (const Instr* instr : order_[c]->instrs())
        if (instr->is(Opcode::fusion)) fused_.insert(instr->called()[0]);
    }
  }

  void module(ProtoWriter& out) {
    out.put_bytes(1, module_.name());
    out.put_bytes(2, module_.entry()->name());
    for (const Computation* each : order_)
      out.put_message(3, [&](ProtoWriter& m) { computation(m, *each); });
    out.put_message(4, [&](ProtoWriter& m) { program_shape(m, *module_.entry(), true); });
    out.integer(6, computation_ids_.at(module_.entry()));
    if (module_.is_scheduled) out.put_message(7, [&](ProtoWriter& m) { schedule(m); });
    const std::unique_ptr<Module> copy = header_of(module_);
    import::header_fields(out, *copy);
  }

 private:
  // The parts that header_fields reads and may change.
  static std::unique_ptr<Module> header_of(const Module& module) {
    auto copy = std::make_unique<Module>(module.name());
    copy->input_output_alias = module.input_output_alias;
    copy->header = module.header;
    copy->replica_count = module.replica_count;
    copy->num_partitions = module.num_partitions;
    copy->states = module.states;
    copy->symbols = module.symbols;
    return copy;
  }

  // `layouts`: the program's layouts, if the module has them.
  void program_shape(ProtoWriter& out, const Computation& computation, bool layouts) const {
    const auto& said = module_.entry_layout;
    const std::vector<Instr*>& parameters = computation.parameters();
    for (size_t i = 0; i < parameters.size(); ++i)
      put_shape(out, 1, layouts && said ? said->first[i] : parameters[i]->shape());
    put_shape(out, 2, layouts && said ? said->second : computation.root()->shape());
    for (const Instr* parameter : parameters) out.put_bytes(3, names_.at(parameter));
  }

  void computation(ProtoWriter& out, const Computation& computation) const {
    out.put_bytes(1, computation.name());
    for (const Instr* each : computation.instrs())
      out.put_message(2, [&](ProtoWriter& m) { instruction(m, *each); });
    out.put_message(4, [&](ProtoWriter& m) { program_shape(m, computation, false); });
    out.integer(5, computation_ids_.at(&computation));
    out.integer(6, instr_ids_.at(computation.root()));
    out.boolean(7, is_fusion(computation));
    out.bytes(8, computation.execution_thread);
  }

  bool is_fusion(const Computation& computation) const { return fused_.contains(&computation); }

  void instruction(ProtoWriter& out, const Instr& instr) const {
    out.put_bytes(1, names_.at(&instr));
    out.put_bytes(2, hlo::opcode_text(instr.opcode()));
    put_shape(out, 3, instr.shape());
    try {
      hlo::Attrs attrs = instr.attrs();
      const tensor::Type type =
          instr.operands().empty() ? tensor::Type::tuple : instr.operand(0)->shape().type();
      std::visit(import::AttrFields<ProtoWriter>{out, instr.opcode(), type}, attrs);
      notes(out, instr);
    } catch (import::Failure& failure) {
      failure.error.message = instr.name() + ": " + failure.error.message;
      throw;
    }
    if (instr.is(Opcode::constant) && !instr.attrs_as<hlo::ConstantAttrs>().elided)
      out.put_message(8, [&](ProtoWriter& m) { put_literal(m, instr.literal(), instr.shape()); });
    out.integer(35, instr_ids_.at(&instr));
    ids(out, 36, instr.operands(), instr_ids_);
    ids(out, 37, instr.control_predecessors(), instr_ids_);
    std::vector<Computation*> called = instr.called();
    // XLA lists a while's body first.
    if (instr.is(Opcode::while_)) std::swap(called[0], called[1]);
    ids(out, 38, called, computation_ids_);
  }

  template <typename T>
  static void ids(ProtoWriter& out, int field, const std::vector<T*>& list,
                  const std::unordered_map<const T*, int64_t>& all) {
    hlo::Ints numbers;
    for (const T* each : list) numbers.push_back(all.at(each));
    out.ints(field, numbers);
  }

  static void notes(ProtoWriter& out, const Instr& instr) {
    hlo::Annotations annotations = instr.annotations();
    if (!instr.nodes().empty()) {
      std::string* metadata = nullptr;
      for (auto& [key, value] : annotations)
        if (key == "metadata") metadata = &value;
      if (metadata == nullptr) metadata = &annotations.emplace_back("metadata", "{}").second;
      *metadata = hlo::with_op_name(*metadata, instr.nodes(), SIZE_MAX);
    }
    import::TextParts facts;
    // ", key=value, …"
    if (const std::string text = hlo::facts_text(instr.facts()); !text.empty())
      facts = import::split_parts(std::string_view(text).substr(2));
    import::annotation_fields(out, annotations, facts);
  }

  // The order of instructions in all computations except those of fusions.
  void schedule(ProtoWriter& out) const {
    for (const Computation* each : order_) {
      if (is_fusion(*each)) continue;
      out.put_message(1, [&](ProtoWriter& entry) {
        entry.put_number(1, computation_ids_.at(each));
        entry.put_message(2, [&](ProtoWriter& m) { ids(m, 1, each->instrs(), instr_ids_); });
      });
    }
  }

  const Module& module_;
  std::vector<Computation*> order_;
  std::unordered_map<const Instr*, std::string> names_;
  std::unordered_map<const Computation*, int64_t> computation_ids_;
  std::unordered_map<const Instr*, int64_t> instr_ids_;
  std::set<const Computation*> fused_;
};

}  // namespace

Result<std::string> to_hlo_proto(const Module& module, std::vector<std::string>* notes) {
  std::string bytes;
  std::set<std::string> lost;
  ProtoWriter out(&bytes, &lost);
  try {
    ModuleWriter(module).module(out);
  } catch (const import::Failure& failure) {
    return tl::unexpected<Error>(failure.error);
  }
  if (bytes.size() > INT32_MAX)
    return user_error("{}: the proto has {} bytes, a message at most 2 GiB", module.name(),
                      bytes.size());
  for (const std::string& what : lost)
    notes->push_back(fmt::format("no place in an HLO proto, left out: {}", what));
  return bytes;
}

}  // namespace heddle::exports
