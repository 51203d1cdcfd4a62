! Times ScaLAPACK on random matrices: potrf, gemm, geqrf (with orgqr), getrf.
!
!   mpirun -np 2 driver OPERATION N BLOCK ROUNDS
!
! prints one line: the best time of ROUNDS in seconds, and a residual that shows the work was done.
program driver
  implicit none
  character(len=16) :: operation, text
  integer :: n, nb, rounds, round, rank, ranks
  integer :: context, rows, columns, row, column, mine_m, mine_n, info, i, j, k
  integer :: desc(9)
  integer, allocatable :: pivots(:)
  double precision, allocatable :: a(:, :), b(:, :), c(:, :), tau(:), work(:), x(:)
  double precision :: started, seconds, best, norm, ask(1)
  integer, external :: numroc, indxl2g
  double precision, external :: pdlange

  call blacs_pinfo(rank, ranks)
  call get_command_argument(1, operation)
  call get_command_argument(2, text); read (text, *) n
  call get_command_argument(3, text); read (text, *) nb
  call get_command_argument(4, text); read (text, *) rounds

  rows = int(sqrt(dble(ranks)))
  do while (mod(ranks, rows) /= 0)
    rows = rows - 1
  end do
  columns = ranks / rows
  call blacs_get(-1, 0, context)
  call blacs_gridinit(context, 'R', rows, columns)
  call blacs_gridinfo(context, rows, columns, row, column)
  mine_m = max(1, numroc(n, nb, row, 0, rows))
  mine_n = max(1, numroc(n, nb, column, 0, columns))
  call descinit(desc, n, n, nb, nb, 0, 0, context, mine_m, info)
  allocate (a(mine_m, mine_n), b(mine_m, mine_n), c(mine_m, mine_n))
  allocate (tau(mine_n + nb), pivots(mine_m + nb), x(max(mine_m, mine_n)))

  best = huge(best)
  do round = 1, rounds
    call fill(a)
    c = 0
    b = a
    call blacs_barrier(context, 'A')
    started = now()
    select case (operation)
    case ('potrf')
      call pdpotrf('L', n, a, 1, 1, desc, info)
    case ('gemm')
      call pdgemm('N', 'N', n, n, n, 1d0, a, 1, 1, desc, b, 1, 1, desc, 0d0, c, 1, 1, desc)
      info = 0
    case ('qr')
      call pdgeqrf(n, n, a, 1, 1, desc, tau, ask, -1, info)
      allocate (work(int(ask(1))))
      call pdgeqrf(n, n, a, 1, 1, desc, tau, work, size(work), info)
      deallocate (work)
      call pdorgqr(n, n, n, a, 1, 1, desc, tau, ask, -1, info)
      allocate (work(int(ask(1))))
      call pdorgqr(n, n, n, a, 1, 1, desc, tau, work, size(work), info)
      deallocate (work)
    case ('getrf')
      call pdgetrf(n, n, a, 1, 1, desc, pivots, info)
    case default
      if (rank == 0) print *, 'unknown operation: ', operation
      call blacs_abort(context, 2)
    end select
    call blacs_barrier(context, 'A')
    seconds = now() - started
    best = min(best, seconds)
  end do
  if (operation == 'gemm') then
    norm = pdlange('F', n, n, c, 1, 1, desc, x)
  else
    norm = pdlange('F', n, n, a, 1, 1, desc, x)
  end if
  if (rank == 0) print '(f12.4, 1x, es12.4, 1x, i0)', best, norm, info
  call blacs_gridexit(context)
  call blacs_exit(0)

contains

  double precision function now()
    integer(8) :: ticks, rate
    call system_clock(ticks, rate)
    now = dble(ticks) / dble(rate)
  end function now

  ! A symmetric, diagonally dominant matrix from a hash of the indices: good for all four operations.
  subroutine fill(m)
    double precision, intent(out) :: m(:, :)
    integer :: gi, gj, low, high
    do j = 1, numroc(n, nb, column, 0, columns)
      gj = indxl2g(j, nb, column, 0, columns)
      do i = 1, numroc(n, nb, row, 0, rows)
        gi = indxl2g(i, nb, row, 0, rows)
        low = min(gi, gj); high = max(gi, gj)
        k = mod(low * 7919 + high * 104729, 65536)
        m(i, j) = dble(k) / 65536d0 - 0.5d0
        if (gi == gj) m(i, j) = m(i, j) + n
      end do
    end do
  end subroutine fill

end program driver
