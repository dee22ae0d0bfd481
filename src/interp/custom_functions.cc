#include "interp/custom_functions.h"

#include <map>
#include <mutex>
#include <utility>

namespace heddle::interp {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const CustomFunction>> functions;
};

Registry& registry() {
  static Registry all;
  return all;
}

}  // namespace

void register_custom_function(const std::string& target, CustomFunction function) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (function)
    all.functions[target] = std::make_shared<const CustomFunction>(std::move(function));
  else
    all.functions.erase(target);
}

std::shared_ptr<const CustomFunction> find_custom_function(const hlo::Instr& custom_call) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found =
      all.functions.find(custom_call.attrs_as<hlo::CustomCallAttrs>().custom_call_target);
  return found == all.functions.end() ? nullptr : found->second;
}

}  // namespace heddle::interp
