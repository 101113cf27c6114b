package main

import "fmt"

//go:noinline
func step(k int) int { return k & 3 }

type shape interface{ area() int }
type sq int

func (s sq) area() int { return int(s) * int(s) }

//go:noinline
func work(n, m int) (found int) {
	for i := 0; i < n; i++ {
		if i%3 == 2 {
			continue
		}
		for k := range m {
			found += step(k + i)
		}
	}
	return found
}

//go:noinline
func sum(list []int, by map[string]int) (s int) {
	for _, v := range list {
		s += v
	}
	for k, v := range by {
		s += len(k) + v
	}
	return s
}

//go:noinline
func kinds(code string) (n int) {
	for _, c := range code {
		switch c {
		case 'a':
			n += 3
		case 'b':
			n *= 2
		case 'c':
			n -= 1
		case 'd':
			n ^= 7
		case 'e':
			n += step(n)
		case 'f':
			n++
		case 'g':
			n += 9
		case 'h':
			return n
		}
	}
	return n
}

func main() {
	t := 0
	for i := range 5 {
		t += work(i, 7-i)
	}
	t += sum([]int{1, 2, 3}, map[string]int{"x": 1, "yy": 2}) + sum(nil, nil) + kinds("abcdefghzz") + kinds("gfedcba")
	var s shape = sq(t)
	fmt.Println(t, s.area())
}
