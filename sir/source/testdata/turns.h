/* Macros that begin loops, and a function of a header. */
struct item {
	struct item *next;
	int value;
};

#define for_each_item(item, list) \
	for (item = (list); item; item = item->next)

#define UP_TO(i, n) for (int i = 0; i < (n); i++)

static inline int positive(const struct item *list)
{
	int n = 0;
	for (; list; list = list->next)
		n += list->value > 0;
	return n;
}
