#!/bin/sh
# with_compiler.sh COMPILER INSTEAD_OF [LAUNCHER] INSTEAD_OF ARGUMENT...: a compiler launcher of CMake that runs [LAUNCHER]
# COMPILER ARGUMENT...; COMPILER may have arguments of its own.
compiler=$1 instead_of=$2 launcher=
shift 2
if [ "$1" != "$instead_of" ]; then
  launcher=$1
  shift
fi
shift
exec $launcher $compiler "$@"
