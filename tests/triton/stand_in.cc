#include "stand_in.h"

// NOLINTBEGIN: names and types are Triton's
extern "C" {

TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char* message) {
  return new TRITONSERVER_Error{code, message};
}
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error) { delete error; }
const char* TRITONSERVER_ErrorMessage(TRITONSERVER_Error* error) { return error->message.c_str(); }
TRITONSERVER_Error* TRITONSERVER_LogMessage(TRITONSERVER_LogLevel, const char*, const int,
                                            const char*) {
  return nullptr;
}
const char* TRITONSERVER_DataTypeString(TRITONSERVER_DataType type) {
  return type == TRITONSERVER_TYPE_INT64  ? "INT64"
         : type == TRITONSERVER_TYPE_FP32 ? "FP32"
                                          : "FP64";
}
TRITONSERVER_DataType TRITONSERVER_StringToDataType(const char* name) {
  return name == std::string("FP32") ? TRITONSERVER_TYPE_FP32 : TRITONSERVER_TYPE_INVALID;
}
TRITONSERVER_Error* TRITONBACKEND_ApiVersion(uint32_t* major, uint32_t* minor) {
  *major = TRITONBACKEND_API_VERSION_MAJOR, *minor = TRITONBACKEND_API_VERSION_MINOR;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelName(TRITONBACKEND_Model* model, const char** name) {
  *name = model->name.c_str();
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelVersion(TRITONBACKEND_Model*, uint64_t* version) {
  *version = 1;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelRepository(TRITONBACKEND_Model* model,
                                                  TRITONBACKEND_ArtifactType* kind,
                                                  const char** location) {
  *kind = TRITONBACKEND_ARTIFACT_FILESYSTEM, *location = model->location.c_str();
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelState(TRITONBACKEND_Model* model, void** state) {
  *state = model->state;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelSetState(TRITONBACKEND_Model* model, void* state) {
  model->state = state;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance* instance,
                                                     TRITONBACKEND_Model** model) {
  *model = instance->model;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request* request,
                                                    uint32_t* count) {
  *count = static_cast<uint32_t>(request->inputs.size());
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request* request,
                                                      const uint32_t i,
                                                      TRITONBACKEND_Input** input) {
  *input = &request->inputs.at(i);
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_InputProperties(TRITONBACKEND_Input* input, const char** name,
                                                  TRITONSERVER_DataType* type,
                                                  const int64_t** shape, uint32_t* rank,
                                                  uint64_t* bytes, uint32_t* buffers) {
  *name = input->name.c_str(), *type = input->type, *shape = input->shape.data();
  *rank = static_cast<uint32_t>(input->shape.size());
  *buffers = static_cast<uint32_t>(input->buffers.size());
  *bytes = 0;
  for (const std::string& buffer : input->buffers) *bytes += buffer.size();
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_InputBuffer(TRITONBACKEND_Input* input, const uint32_t i,
                                              const void** data, uint64_t* bytes,
                                              TRITONSERVER_MemoryType* memory, int64_t*) {
  *data = input->buffers.at(i).data(), *bytes = input->buffers.at(i).size();
  *memory = TRITONSERVER_MEMORY_CPU;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request* request,
                                                     uint32_t* count) {
  *count = static_cast<uint32_t>(request->wanted.size());
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request* request,
                                                    const uint32_t i, const char** name) {
  *name = request->wanted.at(i).c_str();
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseNew(TRITONBACKEND_Response** response,
                                              TRITONBACKEND_Request* request) {
  *response = new TRITONBACKEND_Response{request};
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response* response,
                                                 TRITONBACKEND_Output** output, const char* name,
                                                 const TRITONSERVER_DataType type,
                                                 const int64_t* shape, const uint32_t rank) {
  TRITONBACKEND_Output& made = response->request->outputs[name];
  made = {type, {shape, shape + rank}, {}};
  *output = &made;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output* output, void** data,
                                               const uint64_t bytes,
                                               TRITONSERVER_MemoryType* memory, int64_t*) {
  output->data.resize(bytes);
  *data = output->data.data(), *memory = TRITONSERVER_MEMORY_CPU;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseSend(
    TRITONBACKEND_Response* response, const uint32_t,
    TRITONSERVER_Error* error) {  // the error stays the caller's
  ++response->request->answered;
  if (error != nullptr) response->request->error = error->message;
  delete response;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestRelease(TRITONBACKEND_Request* request, uint32_t) {
  ++request->released;
  return nullptr;
}

}  // extern "C"
// NOLINTEND
