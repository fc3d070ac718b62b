// The exchange of halos between the processes that are neighbours in the grid.
//
// Stencils with diagonals need corners. These arrive by way of two neighbours: the exchange goes in
// y, then in x, then in z, each time with the halo that has arrived before.
#ifndef MINIGHOST_EXCHANGE_HPP
#define MINIGHOST_EXCHANGE_HPP

#include <vector>

#include "application.hpp"
#include "faces.hpp"
#include "options.hpp"
#include "variables.hpp"

namespace minighost {

struct CommTime {
    assay::Time pack, send, wait, recv, unpack;

    assay::Time total() const;
    void add(const CommTime &other);
};

// Of one way, over the whole run. A word is a value.
struct Traffic {
    long messages = 0, words = 0, largest = 0, smallest = 0;

    void count(long message_words);
};

class Exchange {
public:
    Exchange(const Options &options, const Domain &domain, Variables &variables);
    ~Exchange();
    Exchange(const Exchange &) = delete;
    Exchange &operator=(const Exchange &) = delete;

    // Brings the halo of some variables up to date.
    void run(int first, int count);

    // In x, y and z; the fourth is what cannot be told apart by direction.
    static constexpr int MIXED = 3;
    const CommTime &time(int direction) const { return time_[direction]; }
    CommTime time_of_all() const;
    const Traffic &sent() const { return sent_; }
    const Traffic &received() const { return received_; }

private:
    // What is exchanged with one neighbour.
    struct Link {
        int rank, direction;
        int send_tag, receive_tag;
        Face points, halo;
        std::vector<double> send_buffer, receive_buffer;
        // By slot of the first variable, as variables wander through memory.
        std::vector<MPI_Datatype> send_types, receive_types;
    };

    void run_phase(const std::vector<int> &links, int first, int count);
    void run_ordered(int direction, int first, int count);
    void post(const std::vector<int> &links, int first, int count);
    void wait_for_any(const std::vector<int> &links, int first, int count);
    void wait_for_all(const std::vector<int> &links, int first, int count);
    void pack_link(Link &link, int first, int count);
    void unpack_link(Link &link, int first, int count);
    void make_types(Link &link, int together);
    // -1 where the mesh ends.
    int link_at(int direction, Side side) const;

    Variables &variables_;
    ExchangeMethod method_;
    bool uses_types_;
    std::vector<Link> links_;
    std::vector<std::vector<int>> phases_;
    std::vector<MPI_Request> requests_;
    CommTime time_[4];
    Traffic sent_, received_;
};

} // namespace minighost

#endif
