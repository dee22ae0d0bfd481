#include "import/hlo_proto.h"

#include <algorithm>

#include "hlo/names.h"
#include "import/hlo_names.h"
#include "import/hlo_proto_header.h"
#include "import/hlo_proto_literal.h"
#include "import/hlo_proto_module.h"

namespace heddle::import {
namespace {

using tensor::Literal;
using tensor::Shape;

// ProgramShapeProto, checked against the entry.
void read_entry_layout(HloReader& message, hlo::Module& module) {
  std::vector<ShapeMessage> messages;
  message.each(1, 0, [&](HloReader& m, size_t i) { shape_fields(m, place(messages, i)); });
  const std::optional<Shape> result = shape_field(message, 2, nullptr);
  const std::vector<hlo::Instr*>& entry = module.entry()->parameters();
  std::vector<Shape> shapes;
  for (const ShapeMessage& each : messages) shapes.push_back(to_shape(each));
  bool fits = result && shapes.size() == entry.size() &&
              result->compatible(module.entry()->root()->shape());
  for (size_t i = 0; fits && i < entry.size(); ++i) fits = shapes[i].compatible(entry[i]->shape());
  if (!fits) fail("the program shape is not that of the entry computation");
  module.entry_layout.emplace(std::move(shapes), *result);
}

// The kinds of file, by their structure.
enum class Kind { none, module, wrapped, snapshot };

// Calls visit(field, bytes) for each string or message of a well-formed message; false for others.
template <typename Visit>
bool walk(std::string_view bytes, Visit visit) {
  protozero::pbf_reader in(bytes.data(), bytes.size());
  try {
    while (in.next()) {
      const auto field = in.tag();
      if (in.wire_type() == protozero::pbf_wire_type::length_delimited) {
        visit(field, delimited_bytes(in));
      } else {
        in.skip();
      }
    }
  } catch (const protozero::exception&) {
    return false;
  }
  return true;
}

std::string_view first_field(std::string_view bytes, unsigned wanted) {
  std::string_view found;
  walk(bytes, [&](unsigned field, std::string_view value) {
    if (field == wanted && found.empty()) found = value;
  });
  return found;
}

// Whether it has computations with instructions that have an opcode.
bool is_module(std::string_view bytes) {
  const std::string_view computation = first_field(bytes, 3);
  const std::string_view instruction = first_field(computation, 2);
  const std::string_view opcode = first_field(instruction, 2);
  return !opcode.empty() && hlo::opcode_from_text(opcode).has_value();
}

Kind kind_of(std::string_view bytes) {
  if (is_module(bytes)) return Kind::module;
  const std::string_view inner = first_field(bytes, 1);
  if (is_module(inner)) return Kind::wrapped;
  return is_module(first_field(inner, 1)) ? Kind::snapshot : Kind::none;
}

HloFile read_file(HloReader& file, Kind kind, const std::shared_ptr<const void>& owner) {
  HloFile out;
  HloModuleReader reader(owner);
  const auto literals = [&](HloReader& from, int field) {
    from.each(field, 0,
              [&](HloReader& m, size_t) { out.arguments.push_back(read_literal(m, owner)); });
  };
  if (kind == Kind::module) {
    out.module = reader.module(file);
  } else if (kind == Kind::wrapped) {
    file.message(1, false, [&](HloReader& m) { out.module = reader.module(m); });
    file.each(2, 0, [&](HloReader& partition, size_t i) {
      if (i == 0) literals(partition, 1);
    });
  } else {
    file.message(1, false, [&](HloReader& wrapped) {
      wrapped.message(1, false, [&](HloReader& m) { out.module = reader.module(m); });
    });
    literals(file, 2);
    file.message(3, false, [&](HloReader& m) { out.result = read_literal(m, owner); });
  }
  // If a field occurs twice the last one counts, and it may be empty.
  if (!out.module) fail("no module: the file is damaged");
  return out;
}

}  // namespace

std::unique_ptr<hlo::Module> HloModuleReader::module(HloReader& message) {
  std::string name, entry_name;
  message.bytes(1, name);
  message.bytes(2, entry_name);
  module_ = std::make_unique<hlo::Module>(hlo::legal_name(name));
  message.each(3, 0, [&](HloReader& m, size_t) { computation(m); });
  int64_t entry = 0;
  message.integer(6, entry);
  const auto found_entry = computations_.find(entry);
  if (found_entry == computations_.end()) fail("no computation of id {}, the entry", entry);
  module_->set_entry(found_entry->second);
  module_->is_scheduled = message.message(7, false, [&](HloReader& m) { schedule(m); });
  message.message(4, false, [&](HloReader& m) { read_entry_layout(m, *module_); });
  header_fields(message, *module_);
  return std::move(module_);
}

bool is_hlo_proto(std::string_view bytes) { return kind_of(bytes) != Kind::none; }

Result<HloFile> read_hlo_proto(std::string_view bytes, const std::shared_ptr<const void>& owner) {
  const Kind kind = kind_of(bytes);
  if (kind == Kind::none) return user_error("not an HLO proto: no computation with instructions");
  try {
    HloReading reading;
    HloReader file(bytes, reading);
    HloFile read = decoded(bytes, "an HLO proto", [&] { return read_file(file, kind, owner); });
    for (const std::string& what : reading.lost)
      read.notes.push_back(fmt::format("left out, for want of a place: {}", what));
    return read;
  } catch (const Failure& failure) {
    Error error = failure.error;
    for (char& c : error.message)
      if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    return tl::unexpected<Error>(std::move(error));
  } catch (const std::bad_alloc&) {
    return error_of(ErrorKind::memory, "out of memory while reading the module");
  }
}

Result<Imported> import_hlo_proto(std::string_view bytes, const std::shared_ptr<const void>& owner,
                                  const Options& options) {
  HEDDLE_ASSIGN_OR_RETURN(HloFile file, read_hlo_proto(bytes, owner));
  HEDDLE_ASSIGN_OR_RETURN(Imported imported, with_names(std::move(file.module), options));
  imported.notes.insert(imported.notes.end(), file.notes.begin(), file.notes.end());
  return imported;
}

}  // namespace heddle::import
