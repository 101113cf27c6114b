/* unfolded is compiled without optimisation, so that its blocks have code of their own. */
int unfolded(int n)
{
	int found = 0;
	while (n-- > 0) {
		{
			if (n % 3 == 2)
				continue;
			found += n;
		}
		found &= 0xff;
	}
	{
		return found;
	}
}
