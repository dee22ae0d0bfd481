// Writes the networks of models.h at the sizes that are measured, as HLO text without weights.
//
//   write_models FOLDER [NAME...]
//
// FOLDER/NAME.hlo for each of them. Larger constants are written as {...}, which reads back as a
// fixed pattern: enough to compile a network, not to run it. Status 2: wrong use, 3: a file cannot
// be written.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "hlo/text.h"
#include "models.h"

namespace heddle::models {
namespace {

constexpr int64_t kMostWritten = 16;  // elements of a constant

struct Network {
  const char* name;
  std::function<ModulePtr()> make;
};

ResNetSize many(ResNetSize size, int64_t batch) {
  size.batch = batch;
  return size;
}

std::vector<Network> networks() {
  constexpr int64_t kWords = 50257;
  return {
      {"resnet18", [] { return resnet(resnet18_size()); }},
      {"resnet50", [] { return resnet(resnet50_size()); }},
      {"resnet50_8", [] { return resnet(many(resnet50_size(), 8)); }},
      {"vgg16", [] { return vgg(); }},
      {"repvgg_a0_train", [] { return repvgg(repvgg_a0_size(false)); }},
      {"repvgg_a0_deploy", [] { return repvgg(repvgg_a0_size(true)); }},
      {"repvgg_b0_deploy", [] { return repvgg(repvgg_b0_size(true)); }},
      {"minilm_1x128", [] { return bert({1, 128, 384, 12, 6, 1536}); }},
      {"bert_base_1x128", [] { return bert(); }},
      {"bert_base_8x200", [] { return bert({8, 200}); }},
      {"transformer", [] { return transformer(); }},
      {"gpt2_1x128", [] { return gpt2(); }},
      {"gpt2_decode", [=] { return gpt2({1, 1, 768, 12, 12, 3072, kWords}, 127); }},
      {"llama_1x128", [] { return llama(); }},
      {"llama_decode", [] { return llama({.length = 1, .past = 127}); }},
      {"conformer", [] { return conformer(); }},
      {"crnn", [] { return crnn(); }},
      {"dien", [] { return dien(); }},
      {"dlrm", [] { return dlrm(); }},
  };
}

int write(const Network& network, const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / fmt::format("{}.hlo", network.name);
  std::ofstream file(path);
  file << hlo::to_string(*network.make(), {.max_constant_elems = kMostWritten}) << std::flush;
  if (file) return 0;
  fmt::print(stderr, "error: {}: cannot be written\n", path.string());
  return 3;
}

int run(const std::vector<std::string>& arguments) {
  const std::vector<Network> all = networks();
  if (arguments.empty() || arguments[0].starts_with("-")) {
    fmt::print(stderr, "error: wanted write_models FOLDER [NAME...]\n");
    return 2;
  }
  const std::vector<std::string> names(arguments.begin() + 1, arguments.end());
  for (const std::string& name : names) {
    if (std::any_of(all.begin(), all.end(), [&](const Network& one) { return one.name == name; }))
      continue;
    fmt::print(stderr, "error: {}: no such network\n", name);
    return 2;
  }
  std::error_code ignored;  // a folder that cannot be made takes no file
  std::filesystem::create_directories(arguments[0], ignored);
  for (const Network& network : all) {
    if (!names.empty() && std::find(names.begin(), names.end(), network.name) == names.end())
      continue;
    if (const int status = write(network, arguments[0]); status != 0) return status;
  }
  return 0;
}

}  // namespace
}  // namespace heddle::models

int main(int count, char** values) {
  return heddle::models::run(std::vector<std::string>(values + 1, values + count));
}
