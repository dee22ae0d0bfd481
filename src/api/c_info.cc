// The origin of a model: the C functions of heddle_info.h over Model.
#include "api/c_handles.h"
#include "api/c_status.h"
#include "import/onnx.h"

using namespace heddle;  // NOLINT: the C functions are in no namespace
using api::answered;
using api::Call;
using api::guarded;
using api::told;

extern "C" {

void heddle_model_get_origin(const heddle_model* model, heddle_model_origin* origin) {
  told(__func__, [&](const Call& call) -> Status {
    heddle_model_origin result{};
    if (model != nullptr) {
      const import::Origin& from = model->model->origin();
      result.producer = from.producer.c_str();
      result.producer_version = from.producer_version.c_str();
      result.domain = from.domain.c_str();
      result.description = from.description.c_str();
      result.graph = from.graph.c_str();
      result.graph_description = from.graph_description.c_str();
      result.ir_version = from.ir_version;
      result.version = from.version;
      for (const auto& [domain, version] : from.opsets)
        if (domain == "ai.onnx") result.opset = version;
      result.opsets = std::ssize(from.opsets);
      result.metadata = std::ssize(from.metadata);
    }
    HEDDLE_RETURN_IF_ERROR(call.write("origin", origin, result));
    return call.given({{"model", model}});
  });
}

heddle_opset heddle_model_opset(const heddle_model* model, int64_t number) {
  return answered<heddle_opset>(
      __func__, {nullptr, 0}, [&](const Call& call) -> Result<heddle_opset> {
        HEDDLE_RETURN_IF_ERROR(call.given({{"model", model}}));
        const auto& opsets = model->model->origin().opsets;
        HEDDLE_RETURN_IF_ERROR(call.in_range("number", number, 0, std::ssize(opsets) - 1));
        const auto& [domain, version] = opsets[static_cast<size_t>(number)];
        return heddle_opset{domain.c_str(), version};
      });
}

heddle_status* heddle_model_metadata(const heddle_model* model, int64_t number, const char** key,
                                     const char** value) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"model", model}, {"key", key}, {"value", value}}));
    const auto& metadata = model->model->origin().metadata;
    HEDDLE_RETURN_IF_ERROR(call.in_range("number", number, 0, std::ssize(metadata) - 1));
    const auto& [its_key, its_value] = metadata[static_cast<size_t>(number)];
    *key = its_key.c_str();
    *value = its_value.c_str();
    return {};
  });
}

}  // extern "C"
