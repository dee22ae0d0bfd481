// examples/triton in a stand-in for Triton: loading, what several requests at once get, errors.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "stand_in.h"

namespace {

namespace fs = std::filesystem;

class Triton : public testing::Test {
 protected:
  void SetUp() override {
    void* library = dlopen(TRITON_HEDDLE, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    find(library, "TRITONBACKEND_Initialize", &initialize_);
    find(library, "TRITONBACKEND_ModelInitialize", &model_initialize_);
    find(library, "TRITONBACKEND_ModelFinalize", &model_finalize_);
    find(library, "TRITONBACKEND_ModelInstanceExecute", &execute_);
    ASSERT_EQ(told(initialize_(nullptr)), "");
    model_.name = "minilm";
    model_.location = testing::TempDir() + "/triton_backend_test";
    fs::remove_all(model_.location);
    fs::create_directories(model_.location + "/1");
  }
  void TearDown() override { fs::remove_all(model_.location); }

  template <class F>
  static void find(void* library, const char* name, F* function) {
    *function = reinterpret_cast<F>(dlsym(library, name));
    ASSERT_NE(*function, nullptr) << name;
  }
  static std::string told(TRITONSERVER_Error* error) {
    const std::string message = error == nullptr ? "" : TRITONSERVER_ErrorMessage(error);
    delete error;
    return message;
  }
  void put_model() {
    fs::copy_file(HEDDLE_SOURCE_DIR "/tests/testdata/onnx/minilm/model.onnx",
                  model_.location + "/1/model.onnx");
    std::ofstream(model_.location + "/1/config.json")
        << R"({"batch_dimension": "batch", "padded_dimension": "sequence", "bounds": {"sequence": 16},
               "most_rows": 4, "pad": {"input_ids": 0, "attention_mask": 0}})";
  }
  static TRITONBACKEND_Request request(int64_t length, int64_t first) {
    std::vector<int64_t> ids(static_cast<size_t>(length), 3), mask(ids.size(), 1);
    ids[0] = first;
    const auto bytes = [](const std::vector<int64_t>& from) {
      return std::string(reinterpret_cast<const char*>(from.data()), from.size() * 8);
    };
    TRITONBACKEND_Request made;
    made.inputs.push_back({"attention_mask", TRITONSERVER_TYPE_INT64, {1, length}, {bytes(mask)}});
    made.inputs.push_back({"input_ids",
                           TRITONSERVER_TYPE_INT64,
                           {1, length},
                           {bytes(ids).substr(0, 5), bytes(ids).substr(5)}});
    made.wanted = {"embedding"};
    return made;
  }
  static std::vector<float> floats(const TRITONBACKEND_Request& of) {
    const TRITONBACKEND_Output& output = of.outputs.at("embedding");
    EXPECT_EQ(output.type, TRITONSERVER_TYPE_FP32);
    EXPECT_EQ(output.shape, (std::vector<int64_t>{1, 32}));
    std::vector<float> values(output.data.size() / 4);
    std::memcpy(values.data(), output.data.data(), output.data.size());
    return values;
  }
  void execute(std::vector<TRITONBACKEND_Request>& requests) {
    std::vector<TRITONBACKEND_Request*> all;
    for (TRITONBACKEND_Request& one : requests) all.push_back(&one);
    TRITONBACKEND_ModelInstance instance{&model_};
    ASSERT_EQ(told(execute_(&instance, all.data(), static_cast<uint32_t>(all.size()))), "");
    for (const TRITONBACKEND_Request& one : requests) {
      EXPECT_EQ(one.answered, 1);
      EXPECT_EQ(one.released, 1);
    }
  }

  decltype(&TRITONBACKEND_Initialize) initialize_ = nullptr;
  decltype(&TRITONBACKEND_ModelInitialize) model_initialize_ = nullptr;
  decltype(&TRITONBACKEND_ModelFinalize) model_finalize_ = nullptr;
  decltype(&TRITONBACKEND_ModelInstanceExecute) execute_ = nullptr;
  TRITONBACKEND_Model model_;
};

TEST_F(Triton, RequestsTogetherGetWhatEachGetsAlone) {
  put_model();
  ASSERT_EQ(told(model_initialize_(&model_)), "");
  const std::vector<std::pair<int64_t, int64_t>> kinds{{3, 1}, {16, 2}, {1, 3}, {9, 4},
                                                       {9, 5}, {2, 6},  {8, 7}};
  std::vector<TRITONBACKEND_Request> together;
  for (const auto& [length, first] : kinds) together.push_back(request(length, first));
  execute(together);
  for (size_t i = 0; i < kinds.size(); ++i) {
    std::vector<TRITONBACKEND_Request> alone{request(kinds[i].first, kinds[i].second)};
    execute(alone);
    ASSERT_EQ(together[i].error, "");
    const std::vector<float> a = floats(alone[0]), b = floats(together[i]);
    float length = 0;
    for (size_t e = 0; e < a.size(); ++e) {
      EXPECT_NEAR(a[e], b[e], 1e-5);
      length += a[e] * a[e];
    }
    EXPECT_NEAR(length, 1, 1e-4);  // of a unit vector: it is no zeros
  }
  EXPECT_EQ(told(model_finalize_(&model_)), "");
}

TEST_F(Triton, WhatIsWrongIsSaidOfThatRequestOnly) {
  put_model();
  ASSERT_EQ(told(model_initialize_(&model_)), "");
  std::vector<TRITONBACKEND_Request> requests{request(3, 1), request(17, 1), request(3, 1 << 20),
                                              request(3, 1), request(3, 2)};
  requests[3].inputs[0].type = TRITONSERVER_TYPE_FP32;
  requests[4].wanted = {"other"};
  execute(requests);
  EXPECT_EQ(requests[0].error, "");
  EXPECT_NE(requests[1].error.find("sequence from 1 to 16"), std::string::npos)
      << requests[1].error;
  EXPECT_NE(requests[2].error.find("give indices in that range"), std::string::npos)
      << requests[2].error;
  EXPECT_NE(requests[3].error.find("wanted INT64"), std::string::npos) << requests[3].error;
  EXPECT_NE(requests[4].error.find("has no 'other'"), std::string::npos) << requests[4].error;
  EXPECT_EQ(told(model_finalize_(&model_)), "");
}

TEST_F(Triton, AModelThatCannotBeLoaded) {
  EXPECT_NE(told(model_initialize_(&model_)).find("has no .onnx or .heddle file"),
            std::string::npos);
  std::ofstream(model_.location + "/1/model.onnx") << "no model";
  EXPECT_NE(told(model_initialize_(&model_)), "");
  EXPECT_EQ(told(model_finalize_(&model_)), "");
}

}  // namespace
