//! The exit codes that the help lists.

/// Every code that commands end with, the same for the same reason.
pub const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    run-time error (a file, memory, another PE)
  2    usage error (the command line)
  3    not converged within the sweeps or cycles allowed; everything asked for is written
  124  `run --timeout` ended the run
  130  interrupted (Ctrl-C; 143 by SIGTERM); a checkpoint is written first if one is configured
  141  standard output was closed by its reader";
