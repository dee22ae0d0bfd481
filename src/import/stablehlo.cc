#include "import/stablehlo.h"

#include <algorithm>
#include <map>

#include "hlo/verify.h"
#include "import/hlo_lapack.h"
#include "import/kv_cache.h"
#include "import/mlir_bytecode.h"
#include "import/mlir_parser.h"
#include "import/onnx_support.h"
#include "import/stablehlo_importer.h"
#include "import/vhlo.h"

namespace heddle::import {
namespace {

// The value of a parameter on which a shape depends: given, or `assumed`. Scalars are usually
// extents, so they become 1.
Literal value_for(const Options& options, const MlirType& type, int64_t number, int64_t assumed,
                  Imported& told) {
  const std::string name = fmt::format("arg{}", number);
  if (!type.is_tensor() || !type.is_static())
    fail("{} is {}: it cannot be given a value", name, to_string(type));
  for (const auto* given : {&options.values, &options.hints})
    if (const auto found = given->find(name); found != given->end()) {
      if (found->second.type() != type.element || found->second.shape().extents() != type.dims)
        fail("{} is {}, the model has {}", name, tensor::to_string(found->second.shape()),
             to_string(type));
      return found->second;
    }
  if (type.dims.empty()) assumed = 1;
  Literal value = value_or_throw(Literal::make(Shape::array(type.element, type.dims)));
  for (int64_t i = 0; i < value.elems(); ++i) value.set_s64(i, assumed);
  told.notes.push_back(
      fmt::format("{} is taken as {}: a shape depends on it (give it a value: --input {}=SPEC)",
                  name, assumed, name));
  return value;
}

bool is_bytecode(std::string_view bytes) { return sniff(bytes) == Format::stablehlo_bytecode; }

// Lists operations without a handler, including those in regions.
void list_unsupported(const MlirRegion& region, std::vector<Unsupported>& to) {
  constexpr size_t kMostPlaces = 20;
  for (const MlirBlock& block : region.blocks)
    for (const MlirOp& op : block.ops) {
      for (const MlirRegion& inner : op.regions) list_unsupported(inner, to);
      if (is_terminator(op) || find_shlo(op.name) != nullptr) continue;
      auto known = std::find_if(to.begin(), to.end(),
                                [&](const Unsupported& one) { return one.what == op.name; });
      if (known == to.end())
        known = to.insert(to.end(),
                          {"operator", op.name, "", 0, 0, {}, "export it as other operations"});
      ++known->count;
      if (known->places.size() < kMostPlaces) known->places.push_back(place_of(op));
    }
}

// The producer of bytecode; empty for text.
std::string producer_of(std::string_view bytes) {
  return is_bytecode(bytes) ? parse_bytecode_head(bytes).producer : std::string();
}

// Makes parameters that determine shapes constants, one at a time.
Imported import_fixing(const MlirModule& module, const Options& options) {
  std::map<int64_t, Literal> fixed;
  std::map<int64_t, std::string> reasons;  // of parameters that were not requested by the caller
  Imported told;
  const MlirOp& main = StablehloImporter(module, options, fixed).entry_function();
  const std::vector<MlirValue>& arguments = main.regions[0].blocks[0].arguments;
  const size_t parameters = arguments.size();
  const auto type_of = [&](int64_t number) -> const MlirType& {
    return module.values[static_cast<size_t>(arguments[static_cast<size_t>(number)])];
  };
  for (size_t i = 0; i < parameters; ++i)
    if (const auto name = fmt::format("arg{}", i); options.values.contains(name))
      fixed[static_cast<int64_t>(i)] =
          value_for(options, type_of(static_cast<int64_t>(i)), static_cast<int64_t>(i), 1, told);
  for (;;) {
    try {
      Imported result = StablehloImporter(module, options, fixed).run();
      for (const auto& [number, why] : reasons) {
        if (options.hints.contains(fmt::format("arg{}", number)))
          result.notes.push_back(fmt::format("input arg{} decides shapes: {}", number, why));
        result.bound.push_back(
            {fmt::format("arg{}", number), number, fixed.at(number).shape(), why});
      }
      result.notes.insert(result.notes.begin(), told.notes.begin(), told.notes.end());
      return result;
    } catch (Failure& failure) {  // the cause may be an assumed value
      for (const std::string& note : told.notes) failure.error.message += "; " + note;
      throw;
    } catch (const NeedsParameter& needed) {
      if (fixed.contains(needed.number) || needed.number >= static_cast<int64_t>(parameters))
        fail("{}", needed.why);
      fixed[needed.number] =
          value_for(options, type_of(needed.number), needed.number, needed.assumed, told);
      reasons[needed.number] = needed.why;
    }
  }
}

}  // namespace

std::vector<StablehloPart> split_stablehlo(std::string_view text) {
  if (is_bytecode(text)) return {{text, 1}};
  constexpr std::string_view kMark = "// -----";
  std::vector<StablehloPart> parts;
  int line = 1;
  size_t begin = 0;
  const auto add = [&](size_t end) {
    const std::string_view part = text.substr(begin, end - begin);
    if (!is_comments(part)) parts.push_back({part, line});
    line += static_cast<int>(std::count(part.begin(), part.end(), '\n'));
    begin = end;
  };
  for (size_t at = text.find(kMark); at != std::string_view::npos;
       at = text.find(kMark, at + kMark.size()))
    if (at > 0 && text[at - 1] == '\n') add(at);
  add(text.size());
  return parts;
}

Result<MlirModule> parse_stablehlo(const StablehloPart& part) {
  try {
    return is_bytecode(part.text) ? parse_vhlo(part.text) : parse_mlir(part.text, part.line);
  } catch (const Failure& failure) {
    return tl::unexpected<Error>(one_line(failure.error));
  }
}

std::string name_of_module(const MlirModule& module) {
  if (!module.name.empty()) return module.name;
  for (const MlirOp& op : module.body.ops)
    if (op.name == "func.func")
      if (const MlirAttr* name = op.attr("sym_name")) return name->text;
  return "module";
}

tl::unexpected<Error> error_in_file(const std::string& path, Error error) {
  const size_t digits = error.message.find_first_not_of("0123456789");
  const bool placed = digits != 0 && digits != std::string::npos && error.message[digits] == ':';
  error.message = path + (placed ? ":" : ": ") + error.message;
  return tl::unexpected<Error>(std::move(error));
}

Result<Imported> import_stablehlo(const MlirModule& module, const Options& options) {
  try {
    Imported result = import_fixing(module, options);
    HEDDLE_RETURN_IF_ERROR(replace_lapack_calls(*result.module));
    HEDDLE_RETURN_IF_ERROR(hlo::verify(*result.module));
    HEDDLE_RETURN_IF_ERROR(narrow_caches(options.kv_cache, &result));
    return result;
  } catch (const Failure& failure) {
    if (options.unsupported != nullptr && failure.error.kind == ErrorKind::unsupported) {
      options.unsupported->clear();
      for (const MlirOp& function : module.body.ops)
        for (const MlirRegion& region : function.regions)
          list_unsupported(region, *options.unsupported);
    }
    return tl::unexpected<Error>(one_line(failure.error));
  }
}

Result<Imported> import_stablehlo_bytes(std::string_view text, const Options& options) {
  const std::vector<StablehloPart> parts = split_stablehlo(text);
  if (parts.empty()) return user_error("no module in the text");
  if (parts.size() == 1 && options.module_name.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(const MlirModule module, parse_stablehlo(parts[0]));
    HEDDLE_ASSIGN_OR_RETURN(Imported imported, import_stablehlo(module, options));
    imported.origin.producer = producer_of(parts[0].text);
    return imported;
  }
  std::string names;
  std::vector<MlirModule> found;
  for (const StablehloPart& part : parts) {
    HEDDLE_ASSIGN_OR_RETURN(MlirModule module, parse_stablehlo(part));
    const std::string name = name_of_module(module);
    names += (names.empty() ? "" : ", ") + name;
    if (name == options.module_name) found.push_back(std::move(module));
  }
  if (options.module_name.empty())
    return user_error("{} modules; choose one with --module NAME: {}", parts.size(), names);
  if (found.empty()) return user_error("no module {}; there are: {}", options.module_name, names);
  if (found.size() > 1)
    return user_error("--module {}: {} modules have this name; give them names of their own",
                      options.module_name, found.size());
  return import_stablehlo(found[0], options);
}

}  // namespace heddle::import
