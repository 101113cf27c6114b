#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void total(FILE *out, const struct worker *workers, int n)
{
	struct counts sum = {0};
	for (int i = 0; i < n; i++) {
#define ADD(function) sum.function += workers[i].counts->function;
		COUNTED(ADD)
#undef ADD
	}
#define PRINT(function) fprintf(out, "total " #function " %" PRIu64 "\n", sum.function);
	COUNTED(PRINT)
#undef PRINT
}

static void print(FILE *out, int number, const char *state, const struct worker *workers, int n)
{
	uint64_t checksum = 0;
	long wrong = 0;
	fprintf(out, "report %d %s\n", number, state);
	for (int i = 0; i < n; i++) {
		const struct worker *w = &workers[i];
#define PRINT(function) fprintf(out, "count %s %d " #function " %" PRIu64 "\n", w->name, w->tid, w->counts->function);
		COUNTED(PRINT)
#undef PRINT
		checksum += w->checksum;
		wrong += w->wrong;
	}
	total(out, workers, n);
	fprintf(out, "checksum %016" PRIx64 " %s\nend\n", checksum, wrong ? "WRONG" : "ok");
}

static void replace(const char *path, int number, const char *state, const struct worker *workers, int n)
{
	char fresh[4096];
	if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh)
		return;
	FILE *out = fopen(fresh, "w");
	if (!out) {
		perror(fresh);
		return;
	}
	print(out, number, state, workers, n);
	if (fclose(out) || rename(fresh, path))
		perror(path);
}

void report(const char *path, const char *state, const struct worker *workers, int n)
{
	static int number;
	number++;
	print(stdout, number, state, workers, n);
	fflush(stdout);
	if (path)
		replace(path, number, state, workers, n);
}
