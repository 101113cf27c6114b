// Package subject contains the programs on which probes are measured, and the interface
// of contenders, which probe them. The programs are in C (bench/reference/subject.c and
// many.c); each of their functions has a twin that is not probed.
//
// Only packages below bench import it. It kills a program that does not answer within a
// time limit.
package subject
