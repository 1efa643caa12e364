"""Forecast: acceptance of a replay × cost of a step → would speculation pay, and at which window?"""
