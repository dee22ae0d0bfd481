#include <charconv>

#include "http.h"

namespace serve {

// A tree of JSON takes many times the bytes of its text.
static constexpr size_t kMostJson = 8 << 20, kTreeBytes = 24;
static constexpr const char* kJson = "application/json";

// The bytes that a request takes of what all may have together.
class Charge {
 public:
  Charge(std::atomic<size_t>& all, size_t most) : all_(all), most_(most) {}
  ~Charge() { all_ -= mine_; }
  void at_least(size_t bytes) {
    if (bytes <= mine_) return;
    const size_t more = bytes - mine_;
    mine_ = bytes;
    if ((all_ += more) > most_)
      throw Refusal(503, "all requests have more than {} bytes; try again later", most_);
  }

 private:
  std::atomic<size_t>& all_;
  const size_t most_;
  size_t mine_ = 0;
};

// Of a header that is a number; -1: it is none.
static int64_t number_in(const httplib::Request& request, const char* header) {
  const std::string text = request.get_header_value(header);
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

static void refuse(httplib::Response& response, int status, const std::string& reason) {
  response.status = status;
  if (status == 503) response.set_header("Retry-After", "1");
  response.set_content(text({{"error", reason.substr(0, 400)}}) + "\n", kJson);
}

// What leaves it open where the request ends is refused: both sides have to agree on that.
static void check_head(const httplib::Request& request) {
  const size_t lengths = request.get_header_value_count("Content-Length");
  const size_t encodings = request.get_header_value_count("Transfer-Encoding");
  const int64_t length = number_in(request, "Content-Length");
  if (lengths + encodings > 1 || (lengths == 1 && length < 0) ||
      (encodings == 1 && request.get_header_value("Transfer-Encoding") != "chunked"))
    throw Refusal(400, "how long its body is must be said once, by a Content-Length or by chunks");
  if (request.method == "POST") {
    if (lengths + encodings == 0) throw Refusal(411, "it has no Content-Length");
    if (request.is_multipart_form_data()) throw Refusal(415, "a multipart body is not served");
  } else if (request.method != "GET" && request.method != "HEAD") {
    throw Refusal(405, "the method is none of GET, HEAD and POST");
  } else if (encodings > 0 || length > 0) {
    throw Refusal(400, "a {} has no body", request.method);
  }
}

// The model of /v2/models/NAME[/versions/1]LAST; empty: it is another path.
static std::string model_in(std::string path, const std::string& last) {
  const std::string begin = "/v2/models/", version = "/versions/1";
  if (!path.starts_with(begin) || !path.ends_with(last)) return {};
  path = path.substr(begin.size(), path.size() - begin.size() - last.size());
  if (path.ends_with(version)) path.resize(path.size() - version.size());
  return path.find('/') == std::string::npos ? path : "";
}

Server::Server(const Limits& limits, Repository& models, Scheduler& scheduler, Metrics& metrics)
    : limits_(limits), models_(models), scheduler_(scheduler), metrics_(metrics) {
  set_payload_max_length(limits.body_bytes);
  set_keep_alive_max_count(1 << 30);
  set_keep_alive_timeout(static_cast<time_t>(limits.idle_seconds));
  add_routes();
}

void Server::add_routes() {
  const auto guarded = [](httplib::Response& response, const auto& function) {
    try {
      function();
    } catch (const Refusal& refusal) {
      refuse(response, refusal.status, refusal.what());
    } catch (const std::bad_alloc&) {
      refuse(response, 503, "there is too little memory; try again later");
    }
  };
  set_pre_routing_handler([=](const httplib::Request& request, httplib::Response& response) {
    guarded(response, [&] { check_head(request); });
    return response.status >= 400 ? HandlerResponse::Handled : HandlerResponse::Unhandled;
  });
  Get(".*", [=, this](const httplib::Request& request, httplib::Response& response) {
    connection->keep = true;
    guarded(response, [&] { get(request.path, response); });
  });
  Post(".*", [=, this](const httplib::Request& request, httplib::Response& response,
                       const httplib::ContentReader& read) {
    guarded(response, [&] { post(request, response, read); });
  });
  const HandlerWithResponse explain = [](const httplib::Request&, httplib::Response& response) {
    if (response.body.empty()) refuse(response, response.status, "it is no HTTP request");
    return HandlerResponse::Handled;
  };
  set_error_handler(explain);
  set_post_routing_handler([this](const httplib::Request&, httplib::Response& response) {
    connection->keep = connection->keep && !draining_;
    if (connection->keep) return;
    response.headers.erase("Keep-Alive");
    response.headers.erase("Connection");
    response.set_header("Connection", "close");
  });
}

void Server::get(const std::string& path, httplib::Response& response) {
  response.status = 200;
  if (path == "/metrics") {
    metrics_.set("heddle_request_bytes", static_cast<double>(bytes_));
    metrics_.set("heddle_connections", static_cast<double>(count_));
    response.set_content(metrics_.text(), "text/plain; version=0.0.4");
  } else if (path == "/v2/health/ready") {
    if (draining_) throw Refusal(503, "the server stops");
    if (!models_.is_ready()) throw Refusal(503, "models are being loaded");
  } else if (path == "/v2" || path == "/v2/") {
    const uint32_t v = heddle_version();
    const std::string version = fmt::format("{}.{}.{}", v / 1000000, v / 1000 % 1000, v % 1000);
    response.set_content(text({{"name", "heddle"},
                               {"version", version},
                               {"extensions", {"binary_tensor_data", "model_repository"}}}),
                         kJson);
  } else if (const std::string ready = model_in(path, "/ready"); !ready.empty()) {
    models_.get(ready);
  } else if (const std::string name = model_in(path, ""); !name.empty()) {
    response.set_content(text(metadata(*models_.get(name))), kJson);
  } else if (path != "/v2/health/live") {
    throw Refusal(404, "there is nothing at this path");
  }
}

std::string Server::read_body(const httplib::Request& request, const httplib::ContentReader& read,
                              Charge& charge) {
  const auto check = [&](size_t bytes) {
    if (bytes > limits_.body_bytes)
      throw Refusal(413, "its body has {} bytes or more, at most {} are served", bytes,
                    limits_.body_bytes);
    charge.at_least(bytes);
  };
  check(static_cast<size_t>(std::max<int64_t>(0, number_in(request, "Content-Length"))));
  connection->allow_body();
  std::string body;
  std::exception_ptr refused;
  const bool is_whole = read([&](const char* data, size_t size) {
    try {
      check(body.size() + size);  // it may be chunked, or compressed
      body.append(data, size);
    } catch (const std::exception&) {
      refused = std::current_exception();
    }
    return refused == nullptr;
  });
  if (refused) std::rethrow_exception(refused);
  if (!is_whole)
    throw Refusal(connection->is_late ? 408 : 400, "its body did not come whole{}",
                  connection->is_late ? " in time" : "");
  connection->keep = true;
  return body;
}

void Server::post(const httplib::Request& request, httplib::Response& response,
                  const httplib::ContentReader& read) {
  const auto begin = Clock::now();
  const bool is_index = request.path == "/v2/repository/index";
  const std::string name = model_in(request.path, "/infer");
  Charge charge(bytes_, limits_.all_bytes);
  std::shared_ptr<Model> model;
  try {
    if (!is_index && name.empty()) throw Refusal(404, "there is nothing at this path to post to");
    if (!is_index) model = models_.get(name);
    const std::string body = read_body(request, read, charge);
    response.status = 200;
    if (is_index) return response.set_content(text(models_.index()), kJson);
    size_t json_bytes = body.size();
    if (request.has_header("Inference-Header-Content-Length"))
      json_bytes = static_cast<size_t>(number_in(request, "Inference-Header-Content-Length"));
    if (json_bytes > body.size())
      throw Refusal(400, "Inference-Header-Content-Length is no number up to {}", body.size());
    if (json_bytes > kMostJson)
      throw Refusal(413, "its JSON has {} bytes, at most {} are served; use binary data",
                    json_bytes, kMostJson);
    charge.at_least(body.size() + json_bytes * kTreeBytes);
    Request decoded = decode(*model, body, json_bytes);
    const std::vector<Tensor> outputs = run(model, decoded);
    response.body = encode(*model, decoded, outputs, &json_bytes);
    response.set_header("Content-Type", json_bytes > 0 ? "application/octet-stream" : kJson);
    if (json_bytes > 0)
      response.set_header("Inference-Header-Content-Length", std::to_string(json_bytes));
  } catch (const Refusal& refusal) {
    metrics_.add("heddle_requests_total",
                 fmt::format("{},code=\"{}\"", label_of(model ? name : ""), refusal.status));
    throw;
  }
  metrics_.add("heddle_requests_total", label_of(name) + ",code=\"200\"");
  metrics_.observe("heddle_request_seconds", label_of(name), seconds(Clock::now() - begin));
}

std::vector<Tensor> Server::run(const std::shared_ptr<Model>& model, Request request) {
  const JobPointer job = job_of(model, std::move(request));
  std::future<std::vector<Tensor>> outputs = job->outputs.get_future();
  scheduler_.submit({job});
  while (outputs.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready)
    if (connection->is_gone()) {
      scheduler_.abandon(job);
      connection->keep = false;
      throw Refusal(499, "the client has gone");
    }
  return outputs.get();
}

}  // namespace serve
