#include "api/snapshot.h"

#include <fmt/format.h>

#include "import/hlo_proto.h"
#include "import/mapped_file.h"

namespace heddle::api {
namespace {

void add_leaves(const tensor::Literal& value, const std::string& name, tensor::NamedLiterals& out) {
  if (!value.shape().is_tuple()) {
    out.emplace_back(name, value);
    return;
  }
  for (size_t i = 0; i < value.elements().size(); ++i)
    add_leaves(value.elements()[i], fmt::format("{}.{}", name, i), out);
}

}  // namespace

Result<Snapshot> use_snapshot(const std::string& path, tensor::NamedLiterals& given) {
  Snapshot snapshot;
  if (!given.empty()) return snapshot;
  HEDDLE_ASSIGN_OR_RETURN(const import::ModelFile opened, import::open_model_file(path));
  if (opened.format != import::Format::hlo_proto) return snapshot;
  Result<import::HloFile> file = import::read_hlo_proto(opened.file->bytes(), opened.file);
  if (!file) return error_in(path, file.error());
  for (size_t i = 0; i < file->arguments.size(); ++i)
    add_leaves(file->arguments[i], fmt::format("arg{}", i), snapshot.arguments);
  if (file->result) add_leaves(*file->result, "out", snapshot.results);
  for (size_t i = 0; i < snapshot.results.size(); ++i)
    snapshot.results[i].first = fmt::format("out{}", i);
  snapshot.used = !snapshot.arguments.empty();
  given = snapshot.arguments;
  return snapshot;
}

}  // namespace heddle::api
