#include "import/onnx.h"

#include <cstring>
#include <filesystem>

#include "hlo/module.h"
#include "import/kv_cache.h"
#include "import/onnx_model.h"

namespace heddle::import {
namespace {

Origin origin_of(const proto::Model& model) {
  Origin origin;
  origin.producer = model.producer;
  origin.producer_version = model.producer_version;
  origin.domain = model.domain;
  origin.description = model.description;
  origin.graph = model.graph.name;
  origin.graph_description = model.graph.description;
  origin.ir_version = model.ir_version;
  origin.version = model.version;
  for (const proto::OpsetImport& import : model.opsets)
    origin.opsets.emplace_back(import.domain.empty() ? "ai.onnx" : import.domain, import.version);
  for (const auto& [key, value] : model.metadata) origin.metadata.emplace_back(key, value);
  return origin;
}

Imported import_decoded(std::string_view bytes, const Options& options, TensorSource& source) {
  const proto::Model model = proto::decode_model(bytes, options.max_nodes);
  const ModelFacts facts = read_facts(model);
  preflight(facts, options.unsupported.get());
  Imported result;
  const std::vector<Input> inputs = bind_inputs(model.graph, options, result);
  import_graph(facts, inputs, options, source, result);
  result.origin = origin_of(model);
  return result;
}

// The folder's boundary: from here on errors are values. `wants_value`: set to whether the error is
// due to an unknown value.
Result<Imported> guarded(std::string_view bytes, const Options& options, TensorSource source,
                         const std::string& directory, bool* wants_value = nullptr) {
  ExternalFiles external(directory);
  source.external = &external;
  source.bytes_left = options.max_constant_bytes;
  source.max_elems = options.max_value_elems;
  source.vocabulary =
      options.vocabulary != nullptr ? options.vocabulary : std::make_shared<tensor::Vocabulary>();
  try {
    Imported imported = import_decoded(bytes, options, source);
    imported.files = external.paths();
    imported.vocabulary = source.vocabulary;
    HEDDLE_RETURN_IF_ERROR(narrow_caches(options.kv_cache, &imported));
    return imported;
  } catch (const Failure& failure) {
    if (wants_value != nullptr) *wants_value = failure.needs != nullptr;
    Error error = one_line(failure.error);
    if (failure.needs != nullptr) error.kind = ErrorKind::value;
    return tl::unexpected<Error>(std::move(error));
  } catch (const std::bad_alloc&) {
    return error_of(ErrorKind::memory, "out of memory while importing the model");
  }
}

Result<Imported> import_file(const std::string& path, const std::shared_ptr<const MappedFile>& file,
                             const Options& options, bool* wants_value) {
  TensorSource source;
  source.file = file;
  source.owner = file;
  std::string directory = std::filesystem::path(path).parent_path().string();
  if (directory.empty()) directory = ".";
  Result<Imported> result =
      guarded(file->bytes(), options, std::move(source), directory, wants_value);
  if (!result) return error_in(path, result.error());
  return result;
}

SupportReport support_of_bytes(std::string_view bytes, const Options& options) {
  const proto::Model model = proto::decode_model(bytes, options.max_nodes);
  return support_of(read_facts(model));
}

}  // namespace

Result<SupportReport> check_support(const std::string& path, const Options& options) {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  SupportReport report;
  try {
    report = support_of_bytes(file->bytes(), options);
  } catch (const Failure& failure) {
    return error_in(path, one_line(failure.error));
  } catch (const std::bad_alloc&) {
    return error_of(ErrorKind::memory, "out of memory while reading the model");
  }
  if (!report.faults.empty()) return report;
  Options staged = options;
  staged.stages = true;
  bool wants_value = false;
  const Result<Imported> imported = import_file(path, file, staged, &wants_value);
  if (!imported) (wants_value ? report.late : report.refused) = imported.error().message;
  if (imported && !imported->undecided.empty()) report.late = imported->undecided_why;
  return report;
}

Result<Imported> import_onnx(const std::string& path, const Options& options) {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  return import_file(path, file, options, nullptr);
}

Result<Imported> import_onnx_bytes(std::string_view bytes, const std::string& directory,
                                   const Options& options) {
  // No 64-byte alignment: tensors begin at arbitrary offsets in the message anyway.
  const auto copy = std::make_shared<std::string>(bytes);
  TensorSource source;
  source.owner = copy;
  return guarded(*copy, options, std::move(source), directory);
}

}  // namespace heddle::import
