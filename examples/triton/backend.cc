// A back end of Triton: models run as examples/serve runs them, and what Triton hands over together
// is joined into batches as there. Triton gives the protocol, the folder and the metrics.
#include <filesystem>
#include <optional>

#include "serve.h"
#include "triton/core/tritonbackend.h"

namespace {

using serve::Refusal;
namespace fs = std::filesystem;

struct Loaded {
  serve::Limits limits;
  serve::Metrics metrics;
  std::atomic<bool> stop = false;
  std::shared_ptr<serve::Model> model;
  std::unique_ptr<serve::Scheduler> scheduler;
};

// An error of Triton as an exception; the other way round.
void must(TRITONSERVER_Error* error) {
  if (error == nullptr) return;
  const std::string reason = TRITONSERVER_ErrorMessage(error);
  TRITONSERVER_ErrorDelete(error);
  throw Refusal(500, "{}", reason);
}

TRITONSERVER_Error* error_of(const std::exception& exception) {
  const auto* refusal = dynamic_cast<const Refusal*>(&exception);
  const int status = refusal != nullptr ? refusal->status : 500;
  return TRITONSERVER_ErrorNew(status == 400 || status == 413 ? TRITONSERVER_ERROR_INVALID_ARG
                               : status == 503                ? TRITONSERVER_ERROR_UNAVAILABLE
                                                              : TRITONSERVER_ERROR_INTERNAL,
                               exception.what());
}

template <class F>
TRITONSERVER_Error* guarded(F function) {
  try {
    function();
  } catch (const std::exception& exception) {
    return error_of(exception);
  }
  return nullptr;
}

std::unique_ptr<Loaded> load(const std::string& name, const fs::path& folder) {
  auto loaded = std::make_unique<Loaded>();
  serve::Limits& limits = loaded->limits;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  limits.threads = std::max(1, cores / limits.runners);
  fs::path file;
  for (const auto& one : fs::directory_iterator(folder))
    if (one.path().extension() == ".onnx" || one.path().extension() == ".heddle") file = one;
  if (file.empty()) throw Refusal(400, "{} has no .onnx or .heddle file", folder.string());
  serve::Config config;
  config.read(folder / "config.json");
  config.delay_ms = 0;  // Triton waits for others
  loaded->model = std::make_shared<serve::Model>(name, file, config, limits, loaded->stop);
  loaded->scheduler = std::make_unique<serve::Scheduler>(limits, loaded->metrics);
  return loaded;
}

// The inputs as KServe has them: a description, and the tensors behind it.
std::string read_inputs(TRITONBACKEND_Request* request, nlohmann::json* head) {
  std::string tensors;
  uint32_t count = 0;
  must(TRITONBACKEND_RequestInputCount(request, &count));
  for (uint32_t i = 0; i < count; ++i) {
    TRITONBACKEND_Input* input = nullptr;
    const char* name = nullptr;
    TRITONSERVER_DataType type{};
    const int64_t* shape = nullptr;
    uint32_t rank = 0, buffers = 0;
    uint64_t bytes = 0;
    must(TRITONBACKEND_RequestInputByIndex(request, i, &input));
    must(TRITONBACKEND_InputProperties(input, &name, &type, &shape, &rank, &bytes, &buffers));
    for (uint32_t b = 0; b < buffers; ++b) {
      const void* data = nullptr;
      uint64_t size = 0;
      TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
      int64_t device = 0;
      must(TRITONBACKEND_InputBuffer(input, b, &data, &size, &memory, &device));
      if (memory == TRITONSERVER_MEMORY_GPU)
        throw Refusal(500, "input '{}' is on a GPU, wanted in main memory", name);
      tensors.append(static_cast<const char*>(data), size);
    }
    (*head)["inputs"].push_back({{"name", name},
                                 {"datatype", TRITONSERVER_DataTypeString(type)},
                                 {"shape", std::vector<int64_t>(shape, shape + rank)},
                                 {"parameters", {{"binary_data_size", bytes}}}});
  }
  return tensors;
}

serve::Request read_request(const serve::Model& model, TRITONBACKEND_Request* request) {
  nlohmann::json head{{"inputs", nlohmann::json::array()}, {"outputs", nlohmann::json::array()}};
  const std::string tensors = read_inputs(request, &head);
  uint32_t count = 0;
  must(TRITONBACKEND_RequestOutputCount(request, &count));
  for (uint32_t o = 0; o < count; ++o) {
    const char* name = nullptr;
    must(TRITONBACKEND_RequestOutputName(request, o, &name));
    head["outputs"].push_back({{"name", name}, {"parameters", {{"binary_data", true}}}});
  }
  const std::string json = serve::text(head);
  return serve::decode(model, json + tensors, json.size());
}

void write_outputs(const serve::Model& model, const serve::Request& request,
                   const std::vector<serve::Tensor>& outputs, TRITONBACKEND_Response* response) {
  for (const auto& [o, is_binary] : request.outputs) {
    const serve::Port& port = model.outputs[o];
    const serve::Tensor& tensor = outputs.at(o);
    TRITONBACKEND_Output* output = nullptr;
    must(TRITONBACKEND_ResponseOutput(
        response, &output, port.name.c_str(), TRITONSERVER_StringToDataType(port.type->name),
        tensor.dims.data(), static_cast<uint32_t>(tensor.dims.size())));
    void* buffer = nullptr;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    must(TRITONBACKEND_OutputBuffer(output, &buffer, tensor.data.size(), &memory, &device));
    if (memory == TRITONSERVER_MEMORY_GPU)
      throw Refusal(500, "output '{}' is wanted on a GPU", port.name);
    std::copy(tensor.data.begin(), tensor.data.end(), static_cast<char*>(buffer));
  }
}

// One of the requests that Triton hands over together.
struct Item {
  TRITONBACKEND_Request* triton;
  serve::Request request;
  serve::JobPointer job;
  TRITONSERVER_Error* error = nullptr;
};

void log_and_delete(TRITONSERVER_Error* error) {
  if (error == nullptr) return;
  TRITONSERVER_LogMessage(TRITONSERVER_LOG_ERROR, __FILE__, __LINE__,
                          TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
}

void answer(const serve::Model& model, Item& item) {
  TRITONBACKEND_Response* response = nullptr;
  log_and_delete(TRITONBACKEND_ResponseNew(&response, item.triton));
  if (item.error == nullptr && response != nullptr)
    item.error = guarded([&] {
      write_outputs(model, item.request, item.job->outputs.get_future().get(), response);
    });
  if (response != nullptr)
    log_and_delete(
        TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, item.error));
  if (item.error != nullptr) TRITONSERVER_ErrorDelete(item.error);
  log_and_delete(TRITONBACKEND_RequestRelease(item.triton, TRITONSERVER_REQUEST_RELEASE_ALL));
}

Loaded* loaded_of(TRITONBACKEND_Model* model) {
  void* state = nullptr;
  must(TRITONBACKEND_ModelState(model, &state));
  return static_cast<Loaded*>(state);
}

}  // namespace

extern "C" {

TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend*) {
  return guarded([] {
    uint32_t major = 0, minor = 0;
    must(TRITONBACKEND_ApiVersion(&major, &minor));
    if (major != TRITONBACKEND_API_VERSION_MAJOR || minor < TRITONBACKEND_API_VERSION_MINOR)
      throw Refusal(500, "back ends of this server are of version {}.{}, wanted {}.{}", major,
                    minor, TRITONBACKEND_API_VERSION_MAJOR, TRITONBACKEND_API_VERSION_MINOR);
  });
}

TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  return guarded([&] {
    const char *name = nullptr, *location = nullptr;
    uint64_t version = 0;
    TRITONBACKEND_ArtifactType kind = TRITONBACKEND_ARTIFACT_FILESYSTEM;
    must(TRITONBACKEND_ModelName(model, &name));
    must(TRITONBACKEND_ModelVersion(model, &version));
    must(TRITONBACKEND_ModelRepository(model, &kind, &location));
    must(TRITONBACKEND_ModelSetState(
        model, load(name, fs::path(location) / std::to_string(version)).release()));
  });
}

TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* model) {
  return guarded([&] { delete loaded_of(model); });
}

TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(
    TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request** requests, const uint32_t count) {
  TRITONBACKEND_Model* model = nullptr;
  Loaded* loaded = nullptr;
  // Before this is known, the requests stay Triton's.
  if (auto* error = TRITONBACKEND_ModelInstanceModel(instance, &model)) return error;
  if (auto* error = guarded([&] { loaded = loaded_of(model); })) return error;
  std::vector<Item> items;
  serve::Jobs jobs;
  for (uint32_t r = 0; r < count; ++r) {
    Item& item = items.emplace_back(Item{requests[r], {}, nullptr});
    item.error = guarded([&] {
      item.request = read_request(*loaded->model, requests[r]);
      item.job = serve::job_of(loaded->model, item.request);
      jobs.push_back(item.job);
    });
  }
  auto* refused = guarded([&] { loaded->scheduler->submit(jobs); });
  for (Item& item : items) {
    if (refused != nullptr && item.error == nullptr)
      item.error =
          TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, TRITONSERVER_ErrorMessage(refused));
    answer(*loaded->model, item);
  }
  if (refused != nullptr) TRITONSERVER_ErrorDelete(refused);
  return nullptr;
}

}  // extern "C"
