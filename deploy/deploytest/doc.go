// Package deploytest runs what an operator runs: the files of deploy/, with the real
// programs they are written for. make check-deploy runs its tests.
package deploytest
