// Package subject is what probes are measured with: programs in C whose functions are
// probed and have twins that nobody probes (bench/reference/subject.c and many.c), and
// the way in which somebody probes them, a contender.
//
// Only packages below bench import it. A program that says nothing within a time limit
// is killed.
package subject
