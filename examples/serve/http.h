// cpp-httplib parses requests and writes replies; the connections are ours, so that what a client
// takes is bounded: its bytes, its time, and how many there are.
#pragma once

#include <httplib.h>

#include "serve.h"

namespace serve {

// One client's. Used by the thread that serves it, end() by any.
class Connection : public httplib::Stream {
 public:
  Connection(int fd, const Limits& limits) : fd_(fd), limits_(limits) {}
  ~Connection() override { ::close(fd_); }
  bool await_request(double seconds);  // its first byte; false: there is none
  bool flush();
  void linger();         // reads what is still sent, so that the client can read the reply
  bool is_gone() const;  // the client has closed it
  void end();            // no further request is read
  void allow_body() { left_ += 2 * limits_.body_bytes; }  // chunks have frames, too

  bool keep = false;                      // it can take another request
  bool is_late = false, is_over = false;  // the request took too long, or is too long
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return fd_; }
  // Not all of these are virtual in every version of cpp-httplib.
  bool is_readable() const { return true; }
  bool is_writable() const { return true; }
  bool wait_readable() const { return true; }
  bool wait_writable() const { return true; }
  time_t duration() const { return 0; }

 private:
  bool wait(short events);  // false: the deadline is over

  const int fd_;
  const Limits& limits_;
  std::atomic<bool> ended_ = false;
  Clock::time_point deadline_;
  size_t left_ = 0;  // bytes that the request may still have
  char buffer_[16384];
  size_t begin_ = 0, end_ = 0;  // in the buffer: received and not yet read
  std::string reply_;
};

class Server : public httplib::Server {
 public:
  Server(const Limits& limits, Repository& models, Scheduler& scheduler, Metrics& metrics);
  int listen_at(const std::string& host);  // the port
  void accept_until(const std::atomic<bool>& stop);
  bool drain(double seconds);  // ends idle connections; false: requests are still under way

 private:
  void serve(int fd);
  bool one_request(Connection& connection);
  void add_routes();
  void get(const std::string& path, httplib::Response& response);
  void post(const httplib::Request& request, httplib::Response& response,
            const httplib::ContentReader& read);
  std::string read_body(const httplib::Request& request, const httplib::ContentReader& read,
                        class Charge& charge);
  std::vector<Tensor> run(const std::shared_ptr<Model>& model, Request request);

  const Limits& limits_;
  Repository& models_;
  Scheduler& scheduler_;
  Metrics& metrics_;
  std::atomic<size_t> bytes_ = 0;  // of all requests
  std::atomic<bool> draining_ = false;
  std::mutex mutex_;
  std::condition_variable closed_;
  std::set<Connection*> open_;
  std::atomic<size_t> count_ = 0;  // connections; they are behind their entries in `open_`
};

extern thread_local Connection* connection;  // of this thread

}  // namespace serve
