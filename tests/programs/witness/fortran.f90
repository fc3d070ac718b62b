! A known set of MPI calls on four ranks, each of which checks its data. What they add up to stands
! in test_witness_fortran.py.
!
! The calls are the same in the three interfaces: -DINTERFACE=1 for include 'mpif.h', 2 for use mpi,
! 3 for use mpi_f08, where handles have types and the error code is left out.
! The argument "abort" ends the job by MPI_Abort on rank 1 instead.
#if INTERFACE == 3
#define HANDLE(kind) type(kind)
#define STATUS type(MPI_Status)
#define SOURCE_OF(status) status%MPI_SOURCE
#define TAG_OF(status) status%MPI_TAG
#define ONLY_IERROR
#define IERROR
#else
#define HANDLE(kind) integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#define SOURCE_OF(status) status(MPI_SOURCE)
#define TAG_OF(status) status(MPI_TAG)
#define ONLY_IERROR ierror
#define IERROR , ierror
#endif

program calls
#if INTERFACE == 3
  use mpi_f08
#elif INTERFACE == 2
  use mpi
#endif
  implicit none
#if INTERFACE == 1
  include 'mpif.h'
#endif
  integer, parameter :: ranks = 4
  integer :: ierror, rank, left, right
  HANDLE(MPI_Comm) :: world
  character(len=8) :: argument

  call get_command_argument(1, argument)
  if (argument == 'abort') call end_by_abort()
  call MPI_Init(ONLY_IERROR)
  world = MPI_COMM_WORLD
  call MPI_Comm_rank(world, rank IERROR)
  left = modulo(rank - 1, ranks)
  right = modulo(rank + 1, ranks)
  call wildcards()
  call requests()
  call exchanges()
  call persistent()
  call probes()
  call collectives()
  call varying_collectives()
  call communicators()
  call datatypes()
  call neighbours()
  call one_sided()
  call MPI_Finalize(ONLY_IERROR)

contains

  subroutine check(right_data, what)
    logical, intent(in) :: right_data
    character(len=*), intent(in) :: what
    if (right_data) return
    print '(a, i0, a, a)', 'rank ', rank, ' has wrong data after ', what
    call MPI_Abort(MPI_COMM_WORLD, 9 IERROR)
  end subroutine

  subroutine end_by_abort()
    integer :: provided
    call MPI_Init_thread(MPI_THREAD_FUNNELED, provided IERROR)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank IERROR)
    call MPI_Barrier(MPI_COMM_WORLD IERROR)
    if (rank == 1) call MPI_Abort(MPI_COMM_WORLD, 3 IERROR)
    call MPI_Barrier(MPI_COMM_WORLD IERROR)
  end subroutine

  ! All send to rank 0, which does not ask who. Rank 1 is late by 0.3 s. Then rank 0 does ask.
  subroutine wildcards()
    integer :: numbers(8), i, total, length
    integer(8) :: start, now, rate
    double precision :: three(3)
    STATUS :: status
    if (rank == 1) then
      call system_clock(start, rate)
      now = start
      do while (now - start < rate * 3 / 10)
        call system_clock(now)
      end do
    end if
    if (rank == 0) then
      total = 0
      do i = 1, ranks - 1
        numbers = 0
        call MPI_Recv(numbers, 8, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &
                      MPI_STATUS_IGNORE IERROR)
        total = total + sum(numbers)
      end do
      call check(total == 3210, 'MPI_Recv of anything')
    else
      numbers = 10**rank
      call MPI_Send(numbers, rank, MPI_INTEGER, 0, rank, world IERROR)
    end if
    call MPI_Barrier(world IERROR)
    if (rank == 0) then
      call MPI_Recv(three, 3, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &
                    status IERROR)
      call MPI_Get_count(status, MPI_DOUBLE_PRECISION, length IERROR)
      call check(SOURCE_OF(status) == 3 .and. TAG_OF(status) == 5, 'MPI_Recv with a status')
      call check(length == 3, 'MPI_Get_count')
      call check(all(three == 0.5d0), 'MPI_Recv of doubles')
    else if (rank == 3) then
      three = 0.5d0
      call MPI_Send(three, 3, MPI_DOUBLE_PRECISION, 0, 5, world IERROR)
    end if
  end subroutine

  subroutine requests()
    integer :: i, which, tests
    double precision :: sent(5), received(5)
    HANDLE(MPI_Request) :: both(2)
    logical :: done
    do i = 1, 3
      sent = rank + i
      received = 0
      call MPI_Irecv(received, 5, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, i, world, both(1) IERROR)
      call MPI_Isend(sent, 5, MPI_DOUBLE_PRECISION, right, i, world, both(2) IERROR)
      if (i == 1) then
        call MPI_Waitall(2, both, MPI_STATUSES_IGNORE IERROR)
      else if (i == 2) then
        ! MPICH 4.0 gives another index in mpi_f08 than elsewhere.
        call MPI_Waitany(2, both, which, MPI_STATUS_IGNORE IERROR)
        call MPI_Waitany(2, both, which, MPI_STATUS_IGNORE IERROR)
      else
        call MPI_Wait(both(2), MPI_STATUS_IGNORE IERROR)
        done = .false.
        tests = 0
        do while (.not. done)
          call MPI_Test(both(1), done, MPI_STATUS_IGNORE IERROR)
          tests = tests + 1
        end do
      end if
      call check(all(received == left + i), 'MPI_Irecv')
    end do
    print '(a, i0, a, i0)', 'rank ', rank, ' tests ', tests
  end subroutine

  subroutine exchanges()
    integer :: sent(6), received(6)
    STATUS :: status
    sent = rank
    call MPI_Sendrecv(sent, 6, MPI_INTEGER, right, 1, received, 6, MPI_INTEGER, left, 1, world, &
                      MPI_STATUS_IGNORE IERROR)
    call check(all(received == left), 'MPI_Sendrecv')
    call MPI_Sendrecv_replace(sent, 3, MPI_INTEGER, left, 2, MPI_ANY_SOURCE, 2, world, &
                              status IERROR)
    call check(all(sent == (/ right, right, right, rank, rank, rank /)), 'MPI_Sendrecv_replace')
    call check(SOURCE_OF(status) == right, 'the status of MPI_Sendrecv_replace')
  end subroutine

  subroutine persistent()
    integer :: sent(7), received(7), i
    HANDLE(MPI_Request) :: both(2)
    call MPI_Send_init(sent, 7, MPI_INTEGER, right, 3, world, both(1) IERROR)
    call MPI_Recv_init(received, 7, MPI_INTEGER, left, 3, world, both(2) IERROR)
    do i = 1, 3
      sent = rank * i
      received = -1
      if (i == 1) then
        call MPI_Start(both(1) IERROR)
        call MPI_Start(both(2) IERROR)
      else
        call MPI_Startall(2, both IERROR)
      end if
      call MPI_Waitall(2, both, MPI_STATUSES_IGNORE IERROR)
      call check(all(received == left * i), 'a persistent receive')
    end do
    call MPI_Request_free(both(1) IERROR)
    call MPI_Request_free(both(2) IERROR)
  end subroutine

  subroutine probes()
    integer :: number
    logical :: found
    HANDLE(MPI_Message) :: message
    STATUS :: status
    number = 42
    if (rank == 1) then
      call MPI_Send(number, 1, MPI_INTEGER, 2, 4, world IERROR)
      call MPI_Send(number, 1, MPI_INTEGER, 2, 5, world IERROR)
    else if (rank == 2) then
      number = 0
      call MPI_Probe(MPI_ANY_SOURCE, 4, world, MPI_STATUS_IGNORE IERROR)
      call MPI_Iprobe(1, 4, world, found, status IERROR)
      call check(found .and. SOURCE_OF(status) == 1, 'MPI_Iprobe')
      call MPI_Recv(number, 1, MPI_INTEGER, 1, 4, world, MPI_STATUS_IGNORE IERROR)
      call check(number == 42, 'MPI_Probe')
      number = 0
      call MPI_Mprobe(MPI_ANY_SOURCE, 5, world, message, MPI_STATUS_IGNORE IERROR)
      call MPI_Mrecv(number, 1, MPI_INTEGER, message, MPI_STATUS_IGNORE IERROR)
      call check(number == 42, 'MPI_Mrecv')
    end if
  end subroutine

  subroutine collectives()
    integer :: ten(10), pairs(2, 0:ranks - 1), own(2), triples(3, 0:ranks - 1), triple(3), i
    double precision :: three(3), whole
    HANDLE(MPI_Request) :: request
    ten = rank
    call MPI_Bcast(ten, 10, MPI_INTEGER, 2, world IERROR)
    call check(all(ten == 2), 'MPI_Bcast')
    three = rank
    call MPI_Allreduce(MPI_IN_PLACE, three, 3, MPI_DOUBLE_PRECISION, MPI_SUM, world IERROR)
    call check(all(three == 6), 'MPI_Allreduce in place')
    call MPI_Reduce(three(1), whole, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 3, world IERROR)
    if (rank == 3) call check(whole == 24, 'MPI_Reduce')
    pairs = -1
    pairs(:, rank) = rank
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, pairs, 2, MPI_INTEGER, world IERROR)
    call check(all(pairs(1, :) == (/ (i, i = 0, 3) /)), 'MPI_Allgather in place')
    call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, pairs, 2, MPI_INTEGER, world IERROR)
    call check(all(pairs == rank), 'MPI_Alltoall in place')
    triple = rank
    call MPI_Gather(triple, 3, MPI_INTEGER, triples, 3, MPI_INTEGER, 0, world IERROR)
    if (rank == 0) call check(all(triples(3, :) == (/ (i, i = 0, 3) /)), 'MPI_Gather')
    pairs(1, :) = (/ (i, i = 0, 3) /)
    pairs(2, :) = pairs(1, :)
    call MPI_Scatter(pairs, 2, MPI_INTEGER, own, 2, MPI_INTEGER, 1, world IERROR)
    call check(all(own == rank), 'MPI_Scatter')
    call MPI_Iallreduce(rank, i, 1, MPI_INTEGER, MPI_MAX, world, request IERROR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERROR)
    call check(i == 3, 'MPI_Iallreduce')
  end subroutine

  ! Block i has i + 1 numbers.
  subroutine varying_collectives()
    integer, parameter :: counts(ranks) = (/ 1, 2, 3, 4 /), shifts(ranks) = (/ 0, 1, 3, 6 /)
    integer :: blocks(10), sent(10), all_blocks(4 * ranks), same(ranks), strides(ranks), i
    integer, parameter :: expected(10) = (/ 0, 1, 1, 2, 2, 2, 3, 3, 3, 3 /)
    blocks = -1
    blocks(shifts(rank + 1) + 1:shifts(rank + 1) + rank + 1) = rank
    call MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, blocks, counts, shifts, MPI_INTEGER, &
                        world IERROR)
    call check(all(blocks == expected), 'MPI_Allgatherv in place')
    same = rank + 1
    strides = (/ (i * (rank + 1), i = 0, 3) /)
    sent = rank
    call MPI_Alltoallv(sent, counts, shifts, MPI_INTEGER, all_blocks, same, strides, MPI_INTEGER, &
                       world IERROR)
    do i = 0, 3
      call check(all(all_blocks(i * (rank + 1) + 1:(i + 1) * (rank + 1)) == i), 'MPI_Alltoallv')
    end do
  end subroutine

  ! Ranks 0 and 2, and 1 and 3. One communicator is never freed.
  subroutine communicators()
    integer :: nine(9), parity_rank, total
    HANDLE(MPI_Comm) :: parity, copy
    call MPI_Comm_split(world, modulo(rank, 2), rank, parity IERROR)
    call MPI_Comm_rank(parity, parity_rank IERROR)
    call check(parity_rank == rank / 2, 'MPI_Comm_split')
    nine = rank
    if (parity_rank == 0) then
      call MPI_Ssend(nine, 9, MPI_INTEGER, 1, 6, parity IERROR)
    else
      call MPI_Recv(nine, 9, MPI_INTEGER, 0, 6, parity, MPI_STATUS_IGNORE IERROR)
      call check(all(nine == rank - 2), 'MPI_Ssend')
    end if
    call MPI_Comm_dup(parity, copy IERROR)
    call MPI_Comm_free(parity IERROR)
    call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, copy IERROR)
    call check(total == 2 + 2 * modulo(rank, 2), 'MPI_Allreduce of a communicator')
  end subroutine

  ! A vector, a section of an array, and a type of absolute addresses.
  subroutine datatypes()
    integer, target, volatile :: numbers(20)
    integer :: i
    integer(kind=MPI_ADDRESS_KIND) :: addresses(1)
    HANDLE(MPI_Datatype) :: every_second, absolute
    numbers = 0
    call MPI_Type_vector(5, 1, 2, MPI_INTEGER, every_second IERROR)
    call MPI_Type_commit(every_second IERROR)
    if (rank == 0) then
      numbers = (/ (i, i = 1, 20) /)
      call MPI_Send(numbers, 1, every_second, 3, 7, world IERROR)
      call MPI_Send(numbers(1:19:2), 10, MPI_INTEGER, 3, 8, world IERROR)
    else if (rank == 3) then
      call MPI_Recv(numbers, 5, MPI_INTEGER, 0, 7, world, MPI_STATUS_IGNORE IERROR)
      call check(all(numbers(1:6) == (/ 1, 3, 5, 7, 9, 0 /)), 'MPI_Send of a vector')
      call MPI_Recv(numbers, 10, MPI_INTEGER, 0, 8, world, MPI_STATUS_IGNORE IERROR)
      call check(all(numbers(1:11) == (/ (i, i = 1, 19, 2), 0 /)), 'MPI_Send of a section')
    end if
    call MPI_Type_free(every_second IERROR)
    numbers = rank
    call MPI_Get_address(numbers(2), addresses(1) IERROR)
    call MPI_Type_create_hindexed(1, (/ 2 /), addresses, MPI_INTEGER, absolute IERROR)
    call MPI_Type_commit(absolute IERROR)
    call MPI_Bcast(MPI_BOTTOM, 1, absolute, 1, world IERROR)
    call check(all(numbers(1:4) == (/ rank, 1, 1, rank /)), 'MPI_Bcast from MPI_BOTTOM')
    call MPI_Type_free(absolute IERROR)
  end subroutine

  subroutine neighbours()
    integer :: received(4)
    HANDLE(MPI_Comm) :: ring
    call MPI_Cart_create(world, 1, (/ ranks /), (/ .true. /), .false., ring IERROR)
    call MPI_Neighbor_allgather((/ rank, rank /), 2, MPI_INTEGER, received, 2, MPI_INTEGER, &
                                ring IERROR)
    call check(all(received == (/ left, left, right, right /)), 'MPI_Neighbor_allgather')
    call MPI_Comm_free(ring IERROR)
  end subroutine

  subroutine one_sided()
    integer(kind=MPI_ADDRESS_KIND) :: bytes, shift
    integer, volatile :: target_numbers(4), origin(3), got(2)
    HANDLE(MPI_Win) :: window
    target_numbers = -1
    origin = rank
    bytes = 16
    call MPI_Win_create(target_numbers, bytes, 4, MPI_INFO_NULL, world, window IERROR)
    call MPI_Win_fence(0, window IERROR)
    shift = 1
    call MPI_Put(origin, 3, MPI_INTEGER, right, shift, 3, MPI_INTEGER, window IERROR)
    call MPI_Win_fence(0, window IERROR)
    shift = 0
    call MPI_Get(got, 2, MPI_INTEGER, right, shift, 2, MPI_INTEGER, window IERROR)
    call MPI_Win_fence(0, window IERROR)
    call check(all(target_numbers == (/ -1, left, left, left /)), 'MPI_Put')
    call check(all(got == (/ -1, rank /)), 'MPI_Get')
    call MPI_Win_free(window IERROR)
  end subroutine
end program
