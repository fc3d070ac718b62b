#include "exchange.hpp"

#include <algorithm>
#include <climits>

namespace minighost {

namespace {

constexpr int PHASE_ORDER[] = { 1, 0, 2 };

// Adds the time that it lives to a place.
class Stopwatch {
public:
    explicit Stopwatch(assay::Time &place) : place_(place), start_(assay::Instant::now()) {}
    ~Stopwatch()
    {
        const long before = place_.runs;
        place_.add(start_, assay::Instant::now());
        assay::require_runs("a part of an exchange", place_, before + 1);
    }
    Stopwatch(const Stopwatch &) = delete;
    Stopwatch &operator=(const Stopwatch &) = delete;

private:
    assay::Time &place_;
    assay::Instant start_;
};

} // namespace

assay::Time CommTime::total() const
{
    assay::Time all = pack;
    for (const assay::Time &way : { send, wait, recv, unpack })
        all.add(way);
    return all;
}

void CommTime::add(const CommTime &other)
{
    pack.add(other.pack);
    send.add(other.send);
    wait.add(other.wait);
    recv.add(other.recv);
    unpack.add(other.unpack);
}

void Traffic::count(long message_words)
{
    smallest = messages ? std::min(smallest, message_words) : message_words;
    largest = std::max(largest, message_words);
    messages++;
    words += message_words;
}

Exchange::Exchange(const Options &options, const Domain &domain, Variables &variables)
    : variables_(variables), method_(options.exchange),
      uses_types_(options.exchange == ExchangeMethod::DATATYPE)
{
    bool in_turn = options.is_diagonal() || method_ == ExchangeMethod::SENDRECV;
    // All at once and in place, messages must not overlap.
    bool with_edges = in_turn || !uses_types_;
    int together = options.is_aggregated() ? options.variables : 1;
    if (!in_turn)
        phases_.emplace_back();
    for (int direction : PHASE_ORDER) {
        if (in_turn)
            phases_.emplace_back();
        for (Side side : { LOW, HIGH }) {
            int rank = domain.neighbour[direction][side];
            if (rank == MPI_PROC_NULL)
                continue;
            Link link;
            link.rank = rank;
            link.direction = direction;
            link.send_tag = 2 * direction + side;
            link.receive_tag = 2 * direction + (1 - side);
            link.points = make_face(variables.layout(), direction, side, Part::POINTS, with_edges);
            link.halo = make_face(variables.layout(), direction, side, Part::HALO, with_edges);
            if (uses_types_) {
                make_types(link, together);
            } else {
                link.send_buffer.resize(together * link.points.words());
                link.receive_buffer.resize(together * link.halo.words());
            }
            phases_.back().push_back(static_cast<int>(links_.size()));
            links_.push_back(std::move(link));
        }
    }
    requests_.reserve(2 * links_.size());
}

Exchange::~Exchange()
{
    for (Link &link : links_)
        for (auto *types : { &link.send_types, &link.receive_types })
            for (MPI_Datatype &type : *types)
                MPI_Type_free(&type);
}

// Of one variable wherever it is, or of all from each place where the first may be.
void Exchange::make_types(Link &link, int together)
{
    auto types_of = [&](const Face &face, std::vector<MPI_Datatype> &types) {
        MPI_Datatype one = face_type(face);
        int slots = variables_.count() + 1;
        if (together == 1) {
            types.push_back(one);
            return;
        }
        for (int slot = 0; slot < slots; slot++) {
            std::vector<MPI_Aint> places;
            for (int v = 0; v < together; v++)
                places.push_back((slot + v) % slots * variables_.layout().grid *
                                 static_cast<MPI_Aint>(sizeof(double)));
            MPI_Datatype all;
            MPI_Type_create_hindexed_block(together, 1, places.data(), one, &all);
            MPI_Type_commit(&all);
            types.push_back(all);
        }
        MPI_Type_free(&one);
    };
    types_of(link.points, link.send_types);
    types_of(link.halo, link.receive_types);
}

CommTime Exchange::time_of_all() const
{
    CommTime all;
    for (const CommTime &of_direction : time_)
        all.add(of_direction);
    return all;
}

int Exchange::link_at(int direction, Side side) const
{
    for (const Link &link : links_)
        if (link.send_tag == 2 * direction + side)
            return static_cast<int>(&link - links_.data());
    return -1;
}

void Exchange::run(int first, int count)
{
    if (method_ == ExchangeMethod::SENDRECV) {
        for (int direction : PHASE_ORDER)
            run_ordered(direction, first, count);
        return;
    }
    for (const std::vector<int> &links : phases_)
        if (!links.empty())
            run_phase(links, first, count);
}

void Exchange::run_phase(const std::vector<int> &links, int first, int count)
{
    post(links, first, count);
    if (method_ == ExchangeMethod::WAITANY)
        wait_for_any(links, first, count);
    else
        wait_for_all(links, first, count);
}

// First all receives, then each send as soon as it is packed.
void Exchange::post(const std::vector<int> &links, int first, int count)
{
    int slot = count == 1 ? 0 : variables_.slot(first);
    double *base = count == 1 ? variables_[first] : variables_.memory();
    requests_.assign(2 * links.size(), MPI_REQUEST_NULL);
    for (std::size_t i = 0; i < links.size(); i++) {
        Link &link = links_[links[i]];
        long words = count * link.halo.words();
        Stopwatch watch(time_[link.direction].recv);
        if (uses_types_)
            MPI_Irecv(base, 1, link.receive_types[slot], link.rank, link.receive_tag,
                      MPI_COMM_WORLD, &requests_[i]);
        else
            MPI_Irecv(link.receive_buffer.data(), static_cast<int>(words), MPI_DOUBLE, link.rank,
                      link.receive_tag, MPI_COMM_WORLD, &requests_[i]);
        assay::ran();
        received_.count(words);
    }
    for (std::size_t i = 0; i < links.size(); i++) {
        Link &link = links_[links[i]];
        long words = count * link.points.words();
        if (!uses_types_)
            pack_link(link, first, count);
        Stopwatch watch(time_[link.direction].send);
        MPI_Request &request = requests_[links.size() + i];
        if (uses_types_)
            MPI_Isend(base, 1, link.send_types[slot], link.rank, link.send_tag, MPI_COMM_WORLD,
                      &request);
        else
            MPI_Isend(link.send_buffer.data(), static_cast<int>(words), MPI_DOUBLE, link.rank,
                      link.send_tag, MPI_COMM_WORLD, &request);
        assay::ran();
        sent_.count(words);
    }
}

void Exchange::wait_for_any(const std::vector<int> &links, int first, int count)
{
    for (std::size_t done = 0; done < requests_.size(); done++) {
        int which;
        assay::Instant start = assay::Instant::now();
        MPI_Waitany(static_cast<int>(requests_.size()), requests_.data(), &which,
                    MPI_STATUS_IGNORE);
        assay::ran();
        auto index = static_cast<std::size_t>(which);
        Link &link = links_[links[index % links.size()]];
        time_[link.direction].wait.add(start, assay::Instant::now());
        if (index < links.size())
            unpack_link(link, first, count);
    }
}

void Exchange::wait_for_all(const std::vector<int> &links, int first, int count)
{
    bool one_direction = links_[links.front()].direction == links_[links.back()].direction;
    {
        Stopwatch watch(time_[one_direction ? links_[links.front()].direction : MIXED].wait);
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        assay::ran();
    }
    if (!uses_types_)
        for (int index : links)
            unpack_link(links_[index], first, count);
}

// Everybody sends up and receives from below, then the other way round.
void Exchange::run_ordered(int direction, int first, int count)
{
    int places[] = { link_at(direction, LOW), link_at(direction, HIGH) };
    for (int place : places)
        if (place >= 0)
            pack_link(links_[place], first, count);
    for (Side to : { HIGH, LOW }) {
        Link *up = places[to] < 0 ? nullptr : &links_[places[to]];
        Link *down = places[1 - to] < 0 ? nullptr : &links_[places[1 - to]];
        if (!up && !down)
            continue;
        long out = up ? count * up->points.words() : 0;
        long in = down ? count * down->halo.words() : 0;
        Stopwatch watch(time_[direction].wait);
        MPI_Sendrecv(up ? up->send_buffer.data() : nullptr, static_cast<int>(out), MPI_DOUBLE,
                     up ? up->rank : MPI_PROC_NULL, to, // the tag is the way
                     down ? down->receive_buffer.data() : nullptr, static_cast<int>(in), MPI_DOUBLE,
                     down ? down->rank : MPI_PROC_NULL, to, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        assay::ran();
        if (up)
            sent_.count(out);
        if (down)
            received_.count(in);
    }
    for (int place : places)
        if (place >= 0)
            unpack_link(links_[place], first, count);
}

void Exchange::pack_link(Link &link, int first, int count)
{
    Stopwatch watch(time_[link.direction].pack);
    pack(variables_, first, count, link.points, link.send_buffer.data());
    assay::ran();
}

void Exchange::unpack_link(Link &link, int first, int count)
{
    Stopwatch watch(time_[link.direction].unpack);
    unpack(variables_, first, count, link.halo, link.receive_buffer.data());
    assay::ran();
}

} // namespace minighost
