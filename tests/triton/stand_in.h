// A stand-in for Triton: the functions that a back end calls, over a model in a folder and requests
// in memory. It checks what Triton would: each request is answered once and released once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#define _COMPILING_TRITONSERVER
#include "triton/core/tritonbackend.h"

struct TRITONSERVER_Error {
  TRITONSERVER_Error_Code code;
  std::string message;
};
struct TRITONBACKEND_Model {
  std::string name, location;
  void* state = nullptr;
};
struct TRITONBACKEND_ModelInstance {
  TRITONBACKEND_Model* model;
};
struct TRITONBACKEND_Input {
  std::string name;
  TRITONSERVER_DataType type;
  std::vector<int64_t> shape;
  std::vector<std::string> buffers;  // one tensor may lie in several
};
struct TRITONBACKEND_Output {
  TRITONSERVER_DataType type;
  std::vector<int64_t> shape;
  std::string data;
};
struct TRITONBACKEND_Request {
  std::vector<TRITONBACKEND_Input> inputs;
  std::vector<std::string> wanted;
  std::map<std::string, TRITONBACKEND_Output> outputs;
  std::string error;
  int answered = 0, released = 0;
};
struct TRITONBACKEND_Response {
  TRITONBACKEND_Request* request;
};
